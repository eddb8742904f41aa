// XXH3 of streams; Xxh3_64() and Xxh3_128() of whole spans are in record.h.
#pragma once

#include <memory>

#include "shardpack/record.h"

namespace shardpack {

// XXH3-128 of bytes that come in pieces.
class Xxh3Stream128 {
 public:
  Xxh3Stream128();
  Xxh3Stream128(Xxh3Stream128&&) noexcept;
  Xxh3Stream128& operator=(Xxh3Stream128&&) noexcept;
  ~Xxh3Stream128();

  void Add(Bytes bytes);
  Digest128 Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace shardpack

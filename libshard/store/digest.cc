#include "libshard/store/checksum.h"
#include "libshard/store/coding.h"
#include "shardpack/manifest.h"

namespace shardpack {

struct DatasetDigester::Impl {
  template <typename T>
  void AddNumber(T number) {
    std::byte bytes[sizeof(T)];
    Store(bytes, number);
    digest.Add(bytes);
  }
  void AddWithLength(Bytes bytes) {
    AddNumber(static_cast<std::uint32_t>(bytes.size()));
    digest.Add(bytes);
  }

  Xxh3Stream128 digest;
};

DatasetDigester::DatasetDigester() : impl_(std::make_unique<Impl>()) {}
DatasetDigester::~DatasetDigester() = default;

void DatasetDigester::Add(std::string_view key, std::int64_t label, Bytes metadata, Encoding encoding,
                          std::uint64_t encoded_xxh3) {
  impl_->AddWithLength(AsBytes(key));
  impl_->AddNumber(label);
  impl_->AddWithLength(metadata);
  impl_->AddNumber(static_cast<std::uint8_t>(encoding));
  impl_->AddNumber(encoded_xxh3);
}

Digest128 DatasetDigester::Finish(const std::vector<std::string>& classes) {
  impl_->AddNumber(static_cast<std::uint32_t>(classes.size()));
  for (const std::string& name : classes) impl_->AddWithLength(AsBytes(name));
  return impl_->digest.Finish();
}

}  // namespace shardpack

// The C locale for one thread.
#pragma once

#include <locale.h>

namespace shardpack {

// While one lives, what C functions called by this thread do depends on no locale of the process. The process of a user
// of the library may well have one: Python sets LC_CTYPE when it starts.
class CLocale {
 public:
  CLocale() : before_(uselocale(TheLocale())) {}
  ~CLocale() { uselocale(before_); }
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  static locale_t TheLocale() {
    static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
    return locale;
  }

  const locale_t before_;
};

}  // namespace shardpack

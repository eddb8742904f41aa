// What is handed to TBB: a pointer, and no more. A file of its own so that tests/support/tsan.supp can name the
// hand-over alone.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
}
#endif

namespace shardpack::loader {

// Calls Run() of `run` from a task. The packaged libtbb is not built for the thread sanitizer, which therefore does not
// see that a task runs after enqueue(): Before() and the task tell it so.
template <typename Run>
struct PumpTask {
  Run* run;

  static void Before([[maybe_unused]] Run* run) {
#if defined(__SANITIZE_THREAD__)
    __tsan_release(run);
#endif
  }
  void operator()() const {
    Run* target = run;
#if defined(__SANITIZE_THREAD__)
    __tsan_acquire(target);
#endif
    target->Pump();
  }
};

}  // namespace shardpack::loader

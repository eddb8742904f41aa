// How the ranks of a job find each other: a key-value store, and the first words said through it.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <type_traits>
#include <utility>

#include "samples/train_ddp/rendezvous.h"

namespace train_ddp {

using Milliseconds = std::chrono::milliseconds;
using StorePtr = c10::intrusive_ptr<c10d::Store>;

// What `call` returns or throws; nullopt where it did neither in time. Made in a thread of its own, because LibTorch's
// store client knows no limit where another program listens at the port or where the serving rank was stopped. A thread
// left behind ends with the process: `call` must own what it uses.
template <typename Call>
std::optional<std::invoke_result_t<Call>> Within(Milliseconds limit, Call call) {
  std::packaged_task<std::invoke_result_t<Call>()> task(std::move(call));
  auto result = task.get_future();
  std::thread(std::move(task)).detach();
  if (result.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return result.get();
}

// Connects to the store (rank 0 serves it, or the launcher's agent), runs `prepare` and hears of every other rank.
// Throws std::exception on every rank where one of them cannot go on, in words that name it.
StorePtr Meet(const Rendezvous& rendezvous, Milliseconds timeout, const std::function<void()>& prepare);

}  // namespace train_ddp

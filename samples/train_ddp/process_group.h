// The ranks of a run as one group: what they say to each other, and how one learns that another failed.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samples/train_ddp/rendezvous.h"
#include "shardpack/loader/world.h"

namespace c10d {
class Reducer;
}

namespace train_ddp {

// A group of one rank talks to nobody: every call returns at once. All calls but the constructor are collective, to be
// made by every rank in the same order, and throw std::exception when a peer died (within a second over Gloo) or was
// silent for the timeout.
class Group {
 public:
  // Meets the other ranks at the rendezvous. `prepare` is what may fail on one rank alone (opening its data): it runs
  // once the store is reached, and where it throws, every rank throws with that message and the rank it came from,
  // instead of waiting for the timeout.
  Group(const Rendezvous& rendezvous, const std::string& backend, bool on_device, std::chrono::milliseconds timeout,
        const std::function<void()>& prepare);
  ~Group();

  const shardpack::loader::World& world() const;

  void Broadcast(std::vector<at::Tensor> tensors);  // from rank 0, in place
  std::vector<double> Sum(std::vector<double> values);
  void Barrier();

  // Every rank's value, by rank.
  std::vector<std::uint64_t> Gather(std::uint64_t value);
  // Throws on every rank, showing the two values, where rank r's differs from rank 0's: "dataset: rank 0 has ..., rank
  // 1 has ...".
  void RequireEqual(const std::string& what, const std::string& value);

  // Called by a rank that cannot go on, instead of any other call: lets the peers know, or finds out which of them
  // failed, and throws the words to end with. Not collective.
  [[noreturn]] void Fail(const std::exception& error);

  // Averages the gradients of `parameters` over the ranks while backward runs, in buckets. Null in a group of one.
  std::unique_ptr<c10d::Reducer> MakeReducer(const std::vector<at::Tensor>& parameters);

 private:
  std::vector<at::Tensor> GatherTensors(const at::Tensor& own);  // of one shape on all ranks
  std::vector<std::string> GatherText(const std::string& text);

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace train_ddp

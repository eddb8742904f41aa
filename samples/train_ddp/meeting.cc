#include "samples/train_ddp/meeting.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "samples/train_ddp/failure.h"

namespace train_ddp {
namespace {

using Clock = std::chrono::steady_clock;

std::string Endpoint(const Rendezvous& rendezvous) {
  return rendezvous.address + ":" + std::to_string(rendezvous.port);
}

std::string Seconds(Milliseconds time) { return std::to_string(time.count() / 1000) + " s"; }

bool Serves(const Rendezvous& rendezvous) { return rendezvous.world.rank == 0 && !rendezvous.agent_owns_store; }

StorePtr ConnectStore(const Rendezvous& rendezvous, Milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = rendezvous.port;
  options.isServer = Serves(rendezvous);
  options.waitWorkers = false;
  options.timeout = timeout;
  const std::string nobody = "rank 0 did not answer at " + Endpoint(rendezvous);
  std::optional<c10::intrusive_ptr<c10d::TCPStore>> connected;
  try {
    connected = Within(timeout + Milliseconds(500), [address = rendezvous.address, options] {
      return c10::make_intrusive<c10d::TCPStore>(address, options);
    });
  } catch (const std::exception& error) {
    if (!options.isServer) throw std::runtime_error(nobody + ": " + FirstLine(error.what()));
    throw std::runtime_error("cannot serve the ranks at " + Endpoint(rendezvous) + ": " + FirstLine(error.what()));
  }
  if (!connected) throw std::runtime_error(nobody + " within " + Seconds(timeout));
  return c10::make_intrusive<c10d::PrefixStore>(rendezvous.prefix, *connected);
}

std::string ReadyKey(std::uint32_t rank) { return "ready/" + std::to_string(rank); }

// What two processes started by hand with the same rank, or with different world sizes, would otherwise learn from a
// timeout or from a torn connection. A launcher's agent counts for itself, and its store may have seen an earlier try.
void RequireOwnPlace(const StorePtr& store, const Rendezvous& rendezvous, Milliseconds timeout) {
  if (rendezvous.agent_owns_store) return;
  const std::string rank = std::to_string(rendezvous.world.rank), size = std::to_string(rendezvous.world.size);
  const auto count = Within(timeout, [store, rank] { return store->add("came/" + rank, 1); });
  if (count.value_or(1) > 1) throw std::runtime_error("another process of this job is rank " + rank + " too");
  const auto agreed = Within(timeout, [store, size] {
    const std::vector<std::uint8_t> own(size.begin(), size.end());
    return store->compareSet("world", {}, own);
  });
  if (agreed && std::string(agreed->begin(), agreed->end()) != size) {
    throw std::runtime_error("rank " + rank + " was started as one of " + size + " ranks, another as one of " +
                             std::string(agreed->begin(), agreed->end()));
  }
}

// Why this job cannot start as far as `rank` is concerned; empty where it is ready.
std::string TroubleWith(std::uint32_t rank, const StorePtr& store, const Rendezvous& rendezvous, Milliseconds timeout,
                        Clock::time_point deadline) {
  const auto left = std::max(std::chrono::duration_cast<Milliseconds>(deadline - Clock::now()), Milliseconds(1));
  const std::string name = "rank " + std::to_string(rank);
  try {
    const auto said = Within(left + Milliseconds(1000), [store, rank, left] {
      store->wait({ReadyKey(rank)}, left);
      return store->get_to_str(ReadyKey(rank));
    });
    if (!said) return "rank 0, which serves the others, was silent for " + Seconds(timeout);
    return said->front() == '-' ? name + " failed: " + said->substr(1) : "";
  } catch (const std::exception& error) {
    if (Clock::now() < deadline) return "lost rank 0, which serves the others: " + FirstLine(error.what());
    return name + " of " + std::to_string(rendezvous.world.size) + " did not come within " + Seconds(timeout);
  }
}

// The serving rank must outlive the others' reading of its message; they count themselves off.
void LingerForReaders(c10d::Store& store, const Rendezvous& rendezvous) {
  if (!Serves(rendezvous)) return;
  for (int i = 0; i < 40; ++i) {
    if (store.add("read", 0) + 1 >= static_cast<std::int64_t>(rendezvous.world.size)) return;
    std::this_thread::sleep_for(Milliseconds(50));
  }
}

}  // namespace

StorePtr Meet(const Rendezvous& rendezvous, Milliseconds timeout, const std::function<void()>& prepare) {
  const StorePtr store = ConnectStore(rendezvous, timeout);
  const auto& world = rendezvous.world;
  std::exception_ptr own;
  std::string message = "+";
  try {
    RequireOwnPlace(store, rendezvous, timeout);
    prepare();
  } catch (const std::exception& error) {
    own = std::current_exception();
    message = "-" + FirstLine(error.what());
  }
  store->set(ReadyKey(world.rank), message);
  std::string trouble;
  const auto deadline = Clock::now() + timeout;
  for (std::uint32_t rank = 0; rank < world.size && trouble.empty() && !own; ++rank) {
    trouble = TroubleWith(rank, store, rendezvous, timeout, deadline);
  }
  if (!own && trouble.empty()) return store;
  if (world.rank != 0) Within(Milliseconds(1000), [store] { return store->add("read", 1); });
  LingerForReaders(*store, rendezvous);
  if (own) std::rethrow_exception(own);
  throw std::runtime_error(trouble);
}

}  // namespace train_ddp

#include "samples/train_ddp/process_group.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#ifdef USE_C10D_NCCL
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>
#endif

#include "samples/train_ddp/failure.h"
#include "samples/train_ddp/meeting.h"
#include "shardpack/error.h"
#include "shardpack/record.h"

namespace train_ddp {
namespace {

constexpr char kFailedKey[] = "failed";

// What Gloo, NCCL and the store throw when a peer is gone or silent: known by its words alone. Ours has a type, and may
// name a file of any words.
bool IsCommunication(const std::exception& error) {
  if (dynamic_cast<const shardpack::Error*>(&error) != nullptr) return false;
  const std::string_view message = error.what();
  for (const std::string_view word :
       {"gloo", "Gloo", "NCCL", "nccl", "TCPStore", "socket", "Connection", "Timed out", "Broken pipe"}) {
    if (message.find(word) != std::string_view::npos) return true;
  }
  return false;
}

// This machine's own address on the way to `address`; empty where there is no such way. Nothing is sent.
std::string LocalAddressTowards(const std::string& address) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(address.c_str(), "9", &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  const int fd = socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return "";
  char text[NI_MAXHOST] = "";
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (connect(fd, list->ai_addr, list->ai_addrlen) == 0 &&
      getsockname(fd, reinterpret_cast<sockaddr*>(&own), &length) == 0) {
    getnameinfo(reinterpret_cast<sockaddr*>(&own), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  }
  close(fd);
  return text;
}

// A host name that resolves to nothing, or to an address of another network, must not break a run on one machine.
std::shared_ptr<::gloo::transport::Device> GlooDevice(const Rendezvous& rendezvous) {
  using c10d::ProcessGroupGloo;
  if (const char* interface = std::getenv("GLOO_SOCKET_IFNAME"); interface != nullptr && *interface != '\0') {
    return ProcessGroupGloo::createDeviceForInterface(interface);
  }
  if (rendezvous.one_machine) return ProcessGroupGloo::createDeviceForHostname("127.0.0.1");
  const std::string address = LocalAddressTowards(rendezvous.address);
  if (!address.empty() && !address.starts_with("127.")) return ProcessGroupGloo::createDeviceForHostname(address);
  return ProcessGroupGloo::createDefaultDevice();
}

c10::intrusive_ptr<c10d::Backend> MakeGloo(const Rendezvous& rendezvous, StorePtr store, Milliseconds timeout) {
  auto options = c10d::ProcessGroupGloo::Options::create(timeout);
  options->devices.push_back(GlooDevice(rendezvous));
  return c10::make_intrusive<c10d::ProcessGroupGloo>(std::move(store), static_cast<int>(rendezvous.world.rank),
                                                     static_cast<int>(rendezvous.world.size), std::move(options));
}

c10::intrusive_ptr<c10d::Backend> MakeNccl([[maybe_unused]] const Rendezvous& rendezvous,
                                           [[maybe_unused]] StorePtr store, [[maybe_unused]] Milliseconds timeout) {
#ifdef USE_C10D_NCCL
  auto options = c10d::ProcessGroupNCCL::Options::create();
  options->timeout = timeout;
  return c10::make_intrusive<c10d::ProcessGroupNCCL>(std::move(store), static_cast<int>(rendezvous.world.rank),
                                                     static_cast<int>(rendezvous.world.size), std::move(options));
#else
  throw std::runtime_error("this train_ddp was built without NCCL: use --backend gloo");
#endif
}

}  // namespace

struct Group::Impl {
  shardpack::loader::World world;
  bool on_device = false;
  StorePtr store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;

  // What a rank that failed by itself left in the store; empty where it died without a word.
  std::string FailureOfPeer() const {
    try {
      const auto said = Within(Milliseconds(1500), [store = store] {
        store->wait({kFailedKey}, Milliseconds(1000));
        return store->get_to_str(kFailedKey);
      });
      return said.value_or("");
    } catch (const std::exception&) {
      return "";
    }
  }

  at::Tensor ToGroup(at::Tensor tensor) const { return on_device ? tensor.cuda() : tensor; }
};

Group::Group(const Rendezvous& rendezvous, const std::string& backend, bool on_device, Milliseconds timeout,
             const std::function<void()>& prepare)
    : impl_(std::make_unique<Impl>()) {
  impl_->world = rendezvous.world;
  impl_->on_device = on_device && backend == "nccl";
  if (rendezvous.world.size == 1) {
    prepare();
    return;
  }
  impl_->store = Meet(rendezvous, timeout, prepare);

  const auto kind = backend == "nccl" ? c10d::ProcessGroup::NCCL : c10d::ProcessGroup::GLOO;
  auto group_store = c10::make_intrusive<c10d::PrefixStore>(backend, impl_->store);
  const auto made = Within(timeout + Milliseconds(1000), [=] {
    return backend == "nccl" ? MakeNccl(rendezvous, group_store, timeout) : MakeGloo(rendezvous, group_store, timeout);
  });
  if (!made) throw std::runtime_error("lost another rank: no connection within the timeout");
  impl_->group = c10::make_intrusive<c10d::ProcessGroup>(group_store, static_cast<int>(rendezvous.world.rank),
                                                         static_cast<int>(rendezvous.world.size));
  // Gloo takes tensors on a device as well, through host memory.
  if (backend == "gloo") impl_->group->setBackend(c10::DeviceType::CPU, kind, *made);
  if (backend == "nccl" || on_device) impl_->group->setBackend(c10::DeviceType::CUDA, kind, *made);
  impl_->group->setDefaultBackend(kind);
}

Group::~Group() = default;

const shardpack::loader::World& Group::world() const { return impl_->world; }

void Group::Broadcast(std::vector<at::Tensor> tensors) {
  if (!impl_->group) return;
  for (auto& tensor : tensors) {
    at::Tensor own = tensor.detach();                  // the same memory; a collective knows no gradients
    std::vector<at::Tensor> one = {own.contiguous()};  // a copy where it is channels-last, which Gloo refuses
    impl_->group->broadcast(one)->wait();
    if (!one[0].is_same(own)) own.copy_(one[0]);
  }
}

std::vector<double> Group::Sum(std::vector<double> values) {
  if (!impl_->group) return values;
  std::vector<at::Tensor> one = {impl_->ToGroup(at::tensor(values, at::kDouble))};
  impl_->group->allreduce(one)->wait();
  const at::Tensor sums = one[0].cpu();
  return {sums.data_ptr<double>(), sums.data_ptr<double>() + sums.numel()};
}

void Group::Fail(const std::exception& error) {
  const std::string message = FirstLine(error.what());
  if (!impl_->group) throw std::runtime_error(message);
  if (IsCommunication(error)) {
    const std::string culprit = impl_->FailureOfPeer();
    throw std::runtime_error(culprit.empty() ? "lost another rank: " + message : culprit);
  }
  try {
    Within(Milliseconds(1000),
           [store = impl_->store, text = "rank " + std::to_string(impl_->world.rank) + " failed: " + message] {
             store->set(kFailedKey, text);
             return true;
           });
  } catch (const std::exception&) {  // the store went with its rank: there is nobody to tell
  }
  // Peers learn of it when the connections close, and must still find the store. Closing may wait for a peer: not here.
  std::thread([group = std::move(impl_->group)]() mutable { group.reset(); }).detach();
  std::this_thread::sleep_for(Milliseconds(impl_->world.rank == 0 ? 1500 : 300));
  throw std::runtime_error(message);
}

void Group::Barrier() { Sum({0.0}); }

std::vector<at::Tensor> Group::GatherTensors(const at::Tensor& own) {
  if (!impl_->group) return {own};
  std::vector<at::Tensor> one = {impl_->ToGroup(own)};
  std::vector<std::vector<at::Tensor>> all(1);
  for (std::uint32_t r = 0; r < impl_->world.size; ++r) all[0].push_back(at::empty_like(one[0]));
  impl_->group->allgather(all, one)->wait();
  for (at::Tensor& tensor : all[0]) tensor = tensor.cpu();
  return all[0];
}

std::vector<std::uint64_t> Group::Gather(std::uint64_t value) {
  const auto bits = static_cast<std::int64_t>(value);
  std::vector<std::uint64_t> values;
  for (const at::Tensor& one : GatherTensors(at::tensor({bits}, at::kLong))) {
    values.push_back(static_cast<std::uint64_t>(one.item<std::int64_t>()));
  }
  return values;
}

std::vector<std::string> Group::GatherText(const std::string& text) {
  const auto lengths = Gather(text.size());
  const auto longest = static_cast<std::int64_t>(*std::max_element(lengths.begin(), lengths.end()));
  at::Tensor padded = at::zeros({longest + 1}, at::kByte);
  std::memcpy(padded.data_ptr(), text.data(), text.size());
  std::vector<std::string> texts;
  for (const at::Tensor& one : GatherTensors(padded)) {
    texts.emplace_back(static_cast<const char*>(one.const_data_ptr()), lengths[texts.size()]);
  }
  return texts;
}

void Group::RequireEqual(const std::string& what, const std::string& value) {
  const auto digests = Gather(shardpack::Xxh3_64(shardpack::AsBytes(value)));
  const auto other = std::find_if(digests.begin(), digests.end(), [&](std::uint64_t d) { return d != digests[0]; });
  if (other == digests.end()) return;
  const auto rank = static_cast<std::size_t>(other - digests.begin());
  const auto values = GatherText(value);
  throw std::runtime_error(what + ": rank 0 has " + values[0] + ", rank " + std::to_string(rank) + " has " +
                           values[rank]);
}

std::unique_ptr<c10d::Reducer> Group::MakeReducer(const std::vector<at::Tensor>& parameters) {
  if (!impl_->group) return nullptr;
  const std::vector<bool> sparse(parameters.size(), false);
  const auto assigned =
      c10d::compute_bucket_assignment_by_size(parameters,
                                              {static_cast<std::size_t>(c10d::kDefaultFirstBucketBytes),
                                               static_cast<std::size_t>(c10d::kDefaultBucketBytesCap)},
                                              sparse);
  // Gradients come in the reverse of the order of the parameters, and so should the buckets.
  std::vector<std::vector<std::size_t>> buckets(std::get<0>(assigned).rbegin(), std::get<0>(assigned).rend());
  // No views of the buckets as gradients: LibTorch's optimisers drop gradients in zero_grad().
  return std::make_unique<c10d::Reducer>(
      parameters, std::move(buckets), impl_->group, sparse, c10d::kDefaultBucketBytesCap,
      /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false,
      std::unordered_map<std::size_t, std::string>{}, c10d::kDefaultFirstBucketBytes,
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, std::vector<std::int64_t>{});
}

}  // namespace train_ddp

#include "samples/train_ddp/rendezvous.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "shardpack/error.h"
#include "shardpack/record.h"

namespace train_ddp {
namespace {

using shardpack::Error;
using shardpack::ErrorCode;

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

[[noreturn]] void Refuse(const std::string& message) { throw Error(ErrorCode::kInvalidArgument, message); }

std::uint16_t PortOf(const std::string& text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > 65535) {
    Refuse("MASTER_PORT is '" + shardpack::Escaped(text) + "', not a port from 1 to 65535");
  }
  return static_cast<std::uint16_t>(value);
}

// Below Linux's ephemeral ports (32768 and up), where a port may be taken by any connection that goes out.
std::uint16_t PortFromIdentity(const std::string& identity) {
  return static_cast<std::uint16_t>(16384 + shardpack::Xxh3_64(shardpack::AsBytes(identity)) % 16384);
}

bool IsLoopback(std::string_view address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

// What names this job and no other, as far as the launcher says.
std::string Identity() {
  std::string identity;
  for (const char* name : {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_STEP_ID",
                           "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMI_JOBID"}) {
    if (const auto value = Variable(name)) identity += std::string(name) + '=' + *value + '/';
  }
  return identity;
}

// mpirun and hand-set variables alone say nothing about addresses: then it must be one machine.
std::string DefaultAddress(const shardpack::loader::World& world) {
  if (const auto nodes = Variable("SLURM_STEP_NODELIST"); nodes && !Variable("RANK")) return FirstNode(*nodes);
  if (world.local_size == world.size) return "127.0.0.1";
  Refuse("rank " + std::to_string(world.rank) + " of " + std::to_string(world.size) +
         ", but MASTER_ADDR is not set: it names the "
         "machine of rank 0 (127.0.0.1 where all ranks are on one machine)");
}

}  // namespace

std::string FirstNode(const std::string& list) {
  const std::size_t open = list.find_first_of("[,");
  if (open == std::string::npos || list[open] == ',') return list.substr(0, open);
  const std::size_t end = list.find_first_of("-,]", open);
  const std::size_t close = list.find(']', open);
  if (end == std::string::npos || close == std::string::npos)
    Refuse("the node list '" + shardpack::Escaped(list) + "' is not closed");
  const std::size_t next = list.find(',', close);
  const std::size_t suffix_length = (next == std::string::npos ? list.size() : next) - close - 1;
  return list.substr(0, open) + list.substr(open + 1, end - open - 1) + list.substr(close + 1, suffix_length);
}

Rendezvous RendezvousFromEnvironment() {
  Rendezvous result;
  result.world = shardpack::loader::World::FromEnvironment();
  auto& world = result.world;
  if (world.size == 1) return result;

  const auto address = Variable("MASTER_ADDR");
  const auto port = Variable("MASTER_PORT");
  result.address = address ? *address : DefaultAddress(world);
  result.one_machine = world.local_size == world.size || IsLoopback(result.address);
  if (result.one_machine) {
    world.local_size = world.size;
    world.local_rank = world.rank;
    if (!address) result.address = "127.0.0.1";
  }
  const std::string identity = Identity();
  if (!port && identity.empty()) {
    Refuse("rank " + std::to_string(world.rank) + " of " + std::to_string(world.size) + ", but MASTER_PORT is not set");
  }
  result.port = port ? PortOf(*port) : PortFromIdentity(identity);
  result.agent_owns_store = Variable("TORCHELASTIC_USE_AGENT_STORE") == "True";
  result.prefix = "train_ddp/" + identity;
  return result;
}

}  // namespace train_ddp

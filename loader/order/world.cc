#include "shardpack/loader/world.h"

#include <charconv>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "shardpack/error.h"

namespace shardpack::loader {
namespace {

// Names of one launcher's variables; the last two may be null.
struct Variables {
  const char *rank, *size, *local_rank, *local_size;
};

constexpr Variables kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},  // torchrun
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", nullptr},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

[[noreturn]] void Refuse(const std::string& why) { throw Error(ErrorCode::kInvalidArgument, why); }

std::optional<std::uint32_t> Number(const char* name) {
  const char* value = name ? std::getenv(name) : nullptr;
  if (!value) return std::nullopt;
  const std::string_view text = value;
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    Refuse(std::string(name) + "=" + Escaped(text) + " is not a whole number");
  }
  return number;
}

void CheckBelow(const char* rank_name, std::uint32_t rank, const char* size_name, std::uint32_t size) {
  if (size == 0) Refuse(std::string(size_name) + " is 0");
  if (rank >= size) {
    Refuse(std::string(rank_name) + "=" + std::to_string(rank) + " is not below " + size_name + "=" +
           std::to_string(size));
  }
}

// Slurm tells the tasks of each node as "2(x3),1": the ranks of this machine are one of these numbers, the largest at
// most.
std::optional<std::uint32_t> SlurmTasksPerNode() {
  const char* value = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  if (!value) return std::nullopt;
  std::uint32_t most = 0;
  std::string_view text = value;
  while (!text.empty()) {
    std::uint32_t count = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), count).ec != std::errc()) return std::nullopt;
    most = count > most ? count : most;
    const std::size_t comma = text.find(',');
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
  }
  return most;
}

void ReadLocal(const Variables& names, World& world) {
  const auto rank = Number(names.local_rank);
  auto size = Number(names.local_size);
  if (!size && rank && std::string_view(names.rank) == "SLURM_PROCID") size = SlurmTasksPerNode();
  world.local_rank = rank.value_or(0);
  world.local_size = size.value_or(world.local_rank + 1);
  if (rank && size)
    CheckBelow(names.local_rank, *rank, names.local_size ? names.local_size : "tasks of this node", *size);
}

}  // namespace

World World::FromEnvironment() {
  World world;
  for (const Variables& names : kLaunchers) {
    const auto rank = Number(names.rank), size = Number(names.size);
    if (!rank && !size) continue;
    if (!size) Refuse(std::string(names.rank) + " is set but " + names.size + " is not");
    if (!rank) Refuse(std::string(names.size) + " is set but " + names.rank + " is not");
    CheckBelow(names.rank, *rank, names.size, *size);
    world.rank = *rank;
    world.size = *size;
    ReadLocal(names, world);
    return world;
  }
  return world;
}

}  // namespace shardpack::loader

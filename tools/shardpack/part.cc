#include "tools/shardpack/part.h"

#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

#include "shardpack/error.h"
#include "tools/common/run_main.h"

namespace shardpack::tools {
namespace {

std::optional<std::uint32_t> Number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::uint32_t> Variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? std::nullopt : Number(text);
}

struct Launcher {
  const char* name;
  const char* size;
  const char* rank;
};
// The innermost first: mpirun inside of a Slurm step starts more tasks than the step has.
constexpr Launcher kOpenMpi = {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"};
constexpr Launcher kPmi = {"PMI", "PMI_SIZE", "PMI_RANK"};
// Of a step of several tasks; an allocation alone has SLURM_NTASKS, and one process.
constexpr Launcher kSlurm = {"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"};

std::optional<Part> PartOf(const Launcher& launcher) {
  const auto size = Variable(launcher.size), rank = Variable(launcher.rank);
  if (!size || *size <= 1) return std::nullopt;
  if (!rank || *rank >= *size) {
    throw UsageError{std::string(launcher.size) + " is " + std::to_string(*size) + " and " + launcher.rank +
                     (rank ? " " + std::to_string(*rank) : " is missing") +
                     ": name the part with --part, or --part none"};
  }
  return Part{*rank, *size, launcher.name};
}

[[noreturn]] void Refuse(const std::string& text, const std::string& why) {
  throw UsageError{"--part '" + Escaped(text) + "': " + why};
}

}  // namespace

Part ParsePart(const std::string& text) {
  if (text == "none") return {};
  const auto slash = text.find('/');
  const auto count = slash == std::string::npos ? std::nullopt : Number(text.substr(slash + 1));
  if (!count || *count == 0) Refuse(text, "say I/N (part I of N, from 0), auto/N or none");
  const std::string index_text = text.substr(0, slash);
  Part part;
  part.count = *count;
  part.launcher = "--part";
  if (index_text == "auto") {
    const auto index = Variable("JOB_COMPLETION_INDEX");
    if (!index) Refuse(text, "JOB_COMPLETION_INDEX, which an indexed Kubernetes job has, holds no number");
    part.index = *index;
    part.launcher = "Kubernetes";
  } else {
    const auto index = Number(index_text);
    if (!index) Refuse(text, "say I/N (part I of N, from 0), auto/N or none");
    part.index = *index;
  }
  if (part.index >= part.count) {
    Refuse(text, "parts are counted from 0, and there is no part " + std::to_string(part.index) + " of " +
                     std::to_string(part.count));
  }
  return part;
}

Part PartOfEnvironment() {
  if (const auto part = PartOf(kOpenMpi)) return *part;
  const auto pmi = PartOf(kPmi), slurm = PartOf(kSlurm);
  // srun speaks PMI too.
  if (slurm && (!pmi || (pmi->index == slurm->index && pmi->count == slurm->count))) return *slurm;
  return pmi.value_or(Part{});
}

}  // namespace shardpack::tools

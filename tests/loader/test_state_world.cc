#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <string>

#include "shardpack/error.h"
#include "shardpack/loader/state.h"
#include "shardpack/loader/world.h"

namespace shardpack::loader {
namespace {

using Catch::Contains;

constexpr char kText[] =
    R"({"version":1,"dataset":"0123456789abcdef0123456789abcdef","order":"fedcba9876543210","seed":18446744073709551615,"epoch":3,"consumed":10000000000})";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kText;
  return text.replace(text.find(from), from.size(), to);
}

TEST_CASE("a state is a short line of JSON and reads back the same", "[state]") {
  const State state = State::FromJson(kText);
  CHECK(state.seed == 18446744073709551615ull);
  CHECK(state.epoch == 3);
  CHECK(state.consumed == 10000000000ull);
  CHECK(state.ToJson() == kText);
  CHECK(state.ToJson().size() < 200);
  State longest = state;
  longest.epoch = longest.consumed = ~0ull;
  CHECK(longest.ToJson().size() < 200);
  CHECK(State::FromJson(" { \"consumed\":1, \"epoch\" : 0,\"seed\":2,\n\"order\":\"fedcba9876543210\","
                        "\"dataset\":\"0123456789abcdef0123456789abcdef\",\"version\":1 } ")
            .seed == 2);
}

TEST_CASE("anything else than a state is refused with what is wrong", "[state]") {
  CHECK_THROWS_WITH(State::FromJson(""), Contains("malformed"));
  CHECK_THROWS_WITH(State::FromJson("[1]"), Contains("not a JSON object"));
  CHECK_THROWS_WITH(State::FromJson(std::string(kText) + "x"), Contains("malformed"));
  CHECK_THROWS_WITH(State::FromJson(With("\"epoch\":3", "\"epoch\":-3")), Contains("\"epoch\""));
  CHECK_THROWS_WITH(State::FromJson(With("\"epoch\":3", "\"epoch\":3.0")), Contains("\"epoch\""));
  CHECK_THROWS_WITH(State::FromJson(With("18446744073709551615", "18446744073709551616")), Contains("\"seed\""));
  CHECK_THROWS_WITH(State::FromJson(With("\"epoch\":3,", "")), Contains("no \"epoch\""));
  CHECK_THROWS_WITH(State::FromJson(With("\"epoch\":3", "\"epoch\":3,\"epoch\":4")), Contains("twice"));
  CHECK_THROWS_WITH(State::FromJson(With("\"epoch\":3", "\"epoch\":3,\"more\":4")), Contains("keys"));
  CHECK_THROWS_WITH(State::FromJson(With("fedcba", "FEDCBA")), Contains("\"order\""));
  CHECK_THROWS_WITH(State::FromJson(With("0123456789abcdef0", "")), Contains("\"dataset\""));
}

TEST_CASE("a state of a newer version is refused as such", "[state]") {
  try {
    State::FromJson(With("\"version\":1", "\"version\":2"));
    FAIL("accepted");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kUnsupported);
  }
}

// The launchers' variables, replaced for the time of a test.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) {
    for (const char* name : kNames) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
    }
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const char* name : kNames) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

 private:
  static constexpr const char* kNames[] = {"RANK",
                                           "WORLD_SIZE",
                                           "LOCAL_RANK",
                                           "LOCAL_WORLD_SIZE",
                                           "SLURM_PROCID",
                                           "SLURM_STEP_NUM_TASKS",
                                           "SLURM_LOCALID",
                                           "SLURM_STEP_TASKS_PER_NODE",
                                           "OMPI_COMM_WORLD_RANK",
                                           "OMPI_COMM_WORLD_SIZE",
                                           "OMPI_COMM_WORLD_LOCAL_RANK",
                                           "OMPI_COMM_WORLD_LOCAL_SIZE",
                                           "PMI_RANK",
                                           "PMI_SIZE",
                                           "MPI_LOCALRANKID",
                                           "MPI_LOCALNRANKS"};
  std::map<std::string, std::string> before_;
};

void CheckWorld(const World& world, std::uint32_t rank, std::uint32_t size, std::uint32_t local_rank,
                std::uint32_t local_size) {
  CHECK(world.rank == rank);
  CHECK(world.size == size);
  CHECK(world.local_rank == local_rank);
  CHECK(world.local_size == local_size);
}

TEST_CASE("rank and world size are those of torchrun, Slurm, Open MPI or PMI", "[world]") {
  {
    Environment none({});
    CheckWorld(World::FromEnvironment(), 0, 1, 0, 1);
  }
  {
    Environment torchrun({{"RANK", "5"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"PMI_RANK", "0"},
                          {"PMI_SIZE", "1"}});
    CheckWorld(World::FromEnvironment(), 5, 8, 1, 4);
  }
  {
    Environment slurm({{"SLURM_PROCID", "6"},
                       {"SLURM_STEP_NUM_TASKS", "7"},
                       {"SLURM_LOCALID", "2"},
                       {"SLURM_STEP_TASKS_PER_NODE", "3(x2),1"}});
    CheckWorld(World::FromEnvironment(), 6, 7, 2, 3);
  }
  {
    Environment openmpi({{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
    CheckWorld(World::FromEnvironment(), 3, 4, 1, 2);
  }
  {
    Environment pmi({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}});
    CheckWorld(World::FromEnvironment(), 1, 2, 0, 1);
  }
}

TEST_CASE("an environment that contradicts itself is refused by name", "[world]") {
  const auto refused = [](const std::map<std::string, std::string>& values, const char* words) {
    Environment environment(values);
    CHECK_THROWS_WITH(World::FromEnvironment(), Contains(words));
  };
  refused({{"RANK", "0"}}, "RANK is set but WORLD_SIZE is not");
  refused({{"WORLD_SIZE", "2"}}, "WORLD_SIZE is set but RANK is not");
  refused({{"RANK", "2"}, {"WORLD_SIZE", "2"}}, "RANK=2 is not below WORLD_SIZE=2");
  refused({{"RANK", "0"}, {"WORLD_SIZE", "0"}}, "WORLD_SIZE is 0");
  refused({{"RANK", "one"}, {"WORLD_SIZE", "2"}}, "RANK=one is not a whole number");
  refused({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}, "RANK=-1");
  refused({{"RANK", "0"}, {"WORLD_SIZE", ""}}, "WORLD_SIZE= is not a whole number");
  refused({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "2"}}, "LOCAL_RANK=3");
}

}  // namespace
}  // namespace shardpack::loader

#include "samples/train_ddp/rendezvous.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "shardpack/error.h"

using Catch::Matchers::Contains;
using train_ddp::FirstNode;
using train_ddp::RendezvousFromEnvironment;

namespace {

// Sets variables for one test, with every launcher's cleared before and after.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<const char*, const char*>>& variables) {
    Clear();
    for (const auto& [name, value] : variables) setenv(name, value, 1);
  }
  ~Environment() { Clear(); }

 private:
  static void Clear() {
    for (const char* name : {"RANK",
                             "WORLD_SIZE",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT",
                             "TORCHELASTIC_RUN_ID",
                             "TORCHELASTIC_RESTART_COUNT",
                             "TORCHELASTIC_USE_AGENT_STORE",
                             "SLURM_PROCID",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_LOCALID",
                             "SLURM_STEP_TASKS_PER_NODE",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "SLURM_STEP_NODELIST",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "PMIX_NAMESPACE",
                             "OMPI_MCA_ess_base_jobid",
                             "PMI_RANK",
                             "PMI_SIZE",
                             "PMI_JOBID"}) {
      unsetenv(name);
    }
  }
};

}  // namespace

TEST_CASE("without a launcher a run is alone and needs no address", "[rendezvous]") {
  const Environment environment({});
  const auto meeting = RendezvousFromEnvironment();
  CHECK(meeting.world.size == 1);
  CHECK(meeting.address.empty());
}

TEST_CASE("torchrun's ranks are clients of its agent and apart from other restarts", "[rendezvous]") {
  std::vector<std::pair<const char*, const char*>> variables = {{"RANK", "3"},
                                                                {"WORLD_SIZE", "4"},
                                                                {"LOCAL_RANK", "1"},
                                                                {"LOCAL_WORLD_SIZE", "2"},
                                                                {"MASTER_ADDR", "node7"},
                                                                {"MASTER_PORT", "29501"},
                                                                {"TORCHELASTIC_RUN_ID", "run"},
                                                                {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                                                                {"TORCHELASTIC_RESTART_COUNT", "0"}};
  std::string first_prefix;
  {
    const Environment environment(variables);
    const auto meeting = RendezvousFromEnvironment();
    CHECK(meeting.agent_owns_store);
    CHECK(meeting.address == "node7");
    CHECK(meeting.port == 29501);
    CHECK_FALSE(meeting.one_machine);
    CHECK(meeting.world.local_size == 2);
    first_prefix = meeting.prefix;
  }
  variables.back().second = "1";
  const Environment environment(variables);
  CHECK(RendezvousFromEnvironment().prefix != first_prefix);
}

TEST_CASE("mpirun on one machine needs neither address nor port, and two jobs take different ports", "[rendezvous]") {
  std::vector<std::pair<const char*, const char*>> variables = {{"OMPI_COMM_WORLD_RANK", "1"},
                                                                {"OMPI_COMM_WORLD_SIZE", "2"},
                                                                {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                                                {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                                                {"PMIX_NAMESPACE", "111"}};
  std::uint16_t first_port = 0;
  {
    const Environment environment(variables);
    const auto meeting = RendezvousFromEnvironment();
    CHECK(meeting.address == "127.0.0.1");
    CHECK(meeting.one_machine);
    CHECK(meeting.port >= 16384);
    CHECK(meeting.port < 32768);
    CHECK_FALSE(meeting.agent_owns_store);
    first_port = meeting.port;
  }
  variables.back().second = "112";
  const Environment environment(variables);
  CHECK(RendezvousFromEnvironment().port != first_port);
}

TEST_CASE("Slurm's first node is the meeting place", "[rendezvous]") {
  const Environment environment({{"SLURM_PROCID", "5"},
                                 {"SLURM_STEP_NUM_TASKS", "8"},
                                 {"SLURM_LOCALID", "1"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                                 {"SLURM_JOB_ID", "77"},
                                 {"SLURM_STEP_ID", "0"},
                                 {"SLURM_STEP_NODELIST", "gpu[003-004]"}});
  const auto meeting = RendezvousFromEnvironment();
  CHECK(meeting.address == "gpu003");
  CHECK_FALSE(meeting.one_machine);
  CHECK(meeting.world.local_size == 4);
}

TEST_CASE("the first of a Slurm node list is found in each of its forms", "[rendezvous]") {
  CHECK(FirstNode("n1") == "n1");
  CHECK(FirstNode("n1,n2") == "n1");
  CHECK(FirstNode("gpu[003-005,9]") == "gpu003");
  CHECK(FirstNode("gpu[7,9],cpu3") == "gpu7");
  CHECK(FirstNode("rack[1-2]-n,x") == "rack1-n");
  CHECK_THROWS_WITH(FirstNode("gpu[003"), Contains("node list"));
}

TEST_CASE("ranks set by hand on the loopback share this machine", "[rendezvous]") {
  const Environment environment(
      {{"RANK", "1"}, {"WORLD_SIZE", "3"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "2000"}});
  const auto meeting = RendezvousFromEnvironment();
  CHECK(meeting.one_machine);
  CHECK(meeting.world.local_size == 3);
  CHECK(meeting.world.local_rank == 1);
}

TEST_CASE("an incomplete or wrong environment names the variable", "[rendezvous]") {
  struct {
    std::vector<std::pair<const char*, const char*>> variables;
    const char* message;
  } const cases[] = {
      {{{"RANK", "0"}}, "WORLD_SIZE"},
      {{{"WORLD_SIZE", "2"}}, "RANK"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}}, "MASTER_ADDR is not set"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}}, "MASTER_PORT is not set"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "0"}}, "MASTER_PORT is '0'"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "80x"}},
       "MASTER_PORT is '80x'"},
  };
  for (const auto& one : cases) {
    const Environment environment(one.variables);
    CHECK_THROWS_WITH(RendezvousFromEnvironment(), Contains(one.message));
  }
}

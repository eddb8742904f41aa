// Where the ranks of a job meet: what the launcher left in the environment. No LibTorch, so that it is tested by
// itself.
#pragma once

#include <cstdint>
#include <string>

#include "shardpack/loader/world.h"

namespace train_ddp {

struct Rendezvous {
  shardpack::loader::World world;
  std::string address;  // of the key-value store; empty where the job has one rank
  std::uint16_t port = 0;
  bool agent_owns_store = false;  // torchrun's agent serves it already: every rank is a client
  bool one_machine = true;        // all ranks run on this machine
  std::string prefix;             // of every key: differs from run to run and from restart to restart
};

// Reads what torchrun, Slurm or mpirun set, or RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set by hand. Without a
// MASTER_PORT the port comes from the job's identity, so that all ranks of one job find the same and two jobs rarely
// do. Throws shardpack::Error with kInvalidArgument naming the variable that is missing or wrong.
Rendezvous RendezvousFromEnvironment();

// The first machine of a Slurm node list: "gpu[003-005,9]" -> "gpu003".
std::string FirstNode(const std::string& node_list);

}  // namespace train_ddp

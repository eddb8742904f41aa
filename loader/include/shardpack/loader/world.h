// This process's place among the processes of a distributed job.
#pragma once

#include <cstdint>
#include <string>

namespace shardpack::loader {

struct World {
  std::uint32_t rank = 0, size = 1;
  std::uint32_t local_rank = 0, local_size = 1;  // among the ranks of this machine

  // Reads RANK/WORLD_SIZE/LOCAL_RANK/LOCAL_WORLD_SIZE (torchrun), else SLURM_PROCID/SLURM_STEP_NUM_TASKS/SLURM_LOCALID,
  // else OMPI_COMM_WORLD_*, else PMI_RANK/PMI_SIZE; alone where none is set. Throws Error with kInvalidArgument where
  // half of a pair is missing or a number is none ("RANK is set but WORLD_SIZE is not").
  static World FromEnvironment();
};

}  // namespace shardpack::loader

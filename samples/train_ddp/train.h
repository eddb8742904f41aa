// The run itself.
#pragma once

#include "samples/train_ddp/options.h"
#include "samples/train_ddp/rendezvous.h"

namespace train_ddp {

// Trains (or only loads) as the options say; results go to stdout on rank 0. Throws std::exception on every rank when
// one fails.
void Run(const Options& options, const Rendezvous& rendezvous);

}  // namespace train_ddp

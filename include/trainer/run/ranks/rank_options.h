#pragma once
// The options of the ranks of a run.

#include <string>

namespace trainer {

// The values of the flags with the same names.
struct RankOptions {
  int ranks = 0;                     // to start on this host; 0: --ranks is not given
  int bucket_size = 0;               // KiB; 0: chosen from the measured latency and bandwidth
  int peer_timeout = 600;            // seconds of silence after which the run ends
  int peer_warning = 60;             // seconds of silence after which a rank is warned about
  std::string exchange_type = "";    // "f32", "f16", "bf16"; "": as the solver says
  std::string exchange = "auto";     // "auto", "nccl", "mpi", "host"
  std::string strategy = "";         // "": as the solver says
  std::string pipeline_stages = "";  // "auto"; "": the layers' field `stage` divides the net
  bool global_batch = false, scale_lr = false, sync_batch_norm = false;
  bool share_gpu = false, log_all_ranks = false;
};

}  // namespace trainer

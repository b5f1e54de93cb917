#pragma once
// The flags of verbs that run on several ranks.

#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/run/ranks/rank_options.h"

namespace trainer {

// --ranks, --bucket_size, --peer_timeout, --peer_warning and --exchange_type.
std::vector<Flag> RankFlags();
// The flags of a verb that trains: `flags`, RankFlags, --global_batch, --scale_lr,
// --sync_batch_norm, --log_all_ranks, --share_gpu and --exchange.
std::vector<Flag> WithRankFlags(std::vector<Flag> flags);

Flag StrategyFlag();
Flag StagesFlag();

// The values of RankFlags.
RankOptions RankOptionsOf(const Flags& flags);
// The values of WithRankFlags.
RankOptions TrainingRankOptionsOf(const Flags& flags);

}  // namespace trainer

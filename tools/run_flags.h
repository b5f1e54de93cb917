#pragma once
// Flags of verbs that train. Each function declares them for variables of the verb.

#include <string>
#include <vector>

#include "trainer/cli/flag_set.h"
#include "trainer/run/ranks/rank_options.h"
#include "trainer/run/start_point.h"

namespace trainer {

// --snapshot, --allow_outside, --resume and --weights.
void DeclareStart(FlagSet& flags, StartOptions* start);
// --weights alone.
void DeclareStartWeights(FlagSet& flags, StartOptions* start);
void DeclareBatch(FlagSet& flags, std::string* batch);
// --memory=SIZE. The text is what ParseMemoryLimit reads.
void DeclareMemoryLimit(FlagSet& flags, std::string* memory);
void DeclareMaxWall(FlagSet& flags, std::string* max_wall);
// --run; without a value it means the folder <snapshot_prefix>_run.
void DeclareRunFolder(FlagSet& flags, std::string* run);

// --ranks, --bucket_size, --peer_timeout, --peer_warning and --exchange_type.
void DeclareRanks(FlagSet& flags, RankOptions* ranks);
// The flags of DeclareRanks, and --global_batch, --scale_lr, --share_gpu, --exchange,
// --sync_batch_norm and --log_all_ranks.
void DeclareTrainingRanks(FlagSet& flags, RankOptions* ranks);
void DeclareStrategy(FlagSet& flags, RankOptions* ranks);
void DeclareStages(FlagSet& flags, RankOptions* ranks);

// The same flags of verbs that still read Flags.
Flag MaxWallFlag();
Flag RunFolderFlag();
Flag BatchFlag();
Flag StartWeightsFlag();
std::vector<Flag> StartFlags();
std::vector<Flag> RankFlags();
std::vector<Flag> WithRankFlags(std::vector<Flag> flags);
StartOptions StartOptionsOf(const Flags& flags);
StartOptions WeightOptionsOf(const Flags& flags);
RankOptions RankOptionsOf(const Flags& flags);
RankOptions TrainingRankOptionsOf(const Flags& flags);

}  // namespace trainer

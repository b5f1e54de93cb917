#pragma once
// Declares flags of verbs that train. Each function binds them to variables of the verb.

#include <string>

#include "trainer/cli/flag_set.h"
#include "trainer/net/net.h"
#include "trainer/run/ranks/rank_options.h"
#include "trainer/run/solver_source.h"
#include "trainer/run/start_point.h"

namespace trainer {

// Declares --snapshot, --allow_outside, --resume, --weights and --reset.
void DeclareStart(FlagSet& flags, StartOptions* start);
// Declares --weights and --reset.
void DeclareStartWeights(FlagSet& flags, StartOptions* start);
// Declares --freeze.
void DeclareFreeze(FlagSet& flags, SolverSource* solver);
// Declares --unfreeze_at.
void DeclareUnfreezeAt(FlagSet& flags, SolverSource* solver);
// Declares --batch=N|auto, also named --batch_size.
void DeclareBatch(FlagSet& flags, std::string* batch);
// Declares --memory=SIZE|auto. The text is what ParseMemoryLimit reads, or the name of a memory
// mode.
void DeclareMemoryLimit(FlagSet& flags, std::string* memory);
// Returns the mode that the text of --memory names, kShared for a size and for any other text.
BufferReuse ParseMemoryMode(const std::string& memory);
// Declares --max_wall, the time limit of the process.
void DeclareMaxWall(FlagSet& flags, std::string* max_wall);
// Declares --run; without a value it means the folder <snapshot_prefix>_run.
void DeclareRunFolder(FlagSet& flags, std::string* run);

// Declares --ranks, --bucket_size, --peer_timeout, --peer_warning and --exchange_type.
void DeclareRanks(FlagSet& flags, RankOptions* ranks);
// Declares the flags of DeclareRanks, and --global_batch, --scale_lr, --share_gpu, --exchange,
// --sync_batch_norm and --log_all_ranks.
void DeclareTrainingRanks(FlagSet& flags, RankOptions* ranks);
// Declares --strategy with the names of all strategies.
void DeclareStrategy(FlagSet& flags, RankOptions* ranks);
// Declares --pipeline_stages=auto, also named --stages.
void DeclareStages(FlagSet& flags, RankOptions* ranks);

}  // namespace trainer

#pragma once
// Flags that several verbs have. Each function declares them for variables of the verb.

#include <string>
#include <string_view>
#include <vector>

#include "solver.pb.h"
#include "trainer/cli/flag_set.h"
#include "trainer/config/net_state.h"
#include "trainer/config/solver_spec.h"
#include "trainer/inference/predict/image_input_flags.h"
#include "trainer/net/net.h"
#include "trainer/run/device.h"
#include "trainer/run/input_options.h"
#include "trainer/storage/cursor.h"

namespace trainer {

void DeclareState(FlagSet& flags, StateFlags* state);  // --level and --stage
void DeclarePhase(FlagSet& flags, caffe::Phase* phase);
void DeclareSet(FlagSet& flags, std::vector<std::string>* changes);
// --model, required.
void DeclareModel(FlagSet& flags, NetSource* net, std::string_view help = "the net");
// --level, --stage and --set.
void DeclareNetChanges(FlagSet& flags, NetSource* net);
void DeclareWeights(FlagSet& flags, std::vector<std::string>* files, bool required = false);
void DeclareIterations(FlagSet& flags, int* iterations);
void DeclareSeed(FlagSet& flags, int* seed, std::string_view help);
void DeclareJson(FlagSet& flags, bool* json);
void DeclareForce(FlagSet& flags, bool* force);
// The hidden --memory_mode=shared|separate|poisoned.
void DeclareMemoryMode(FlagSet& flags, BufferReuse* mode);

// --bad_records. `text` is what ApplyBadRecords reads: "stop" or "skip=N".
void DeclareBadRecords(FlagSet& flags, std::string* text);
// --db_lock. Verbs call SetDbLock with it before a database is opened.
void DeclareDbLock(FlagSet& flags, DbLock* lock);

// --list, --resize, --mean and others of verbs that read image files.
void DeclareImages(FlagSet& flags, ImageInputFlags* images);

// --gpu, --tf32, --deterministic and --gpu_cache of verbs that compute.
void DeclareDevice(FlagSet& flags, DeviceOptions* device);

// Throws kCannotCreate if the file exists and `force` is false.
void RefuseToReplace(const std::string& path, bool force);

}  // namespace trainer

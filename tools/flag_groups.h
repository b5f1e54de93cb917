#pragma once
// Declares flags that several verbs share. Each function binds them to variables of the verb.

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

// Declares --level and --stage.
void DeclareState(FlagSet& flags, StateFlags* state);
// Declares --phase=TRAIN|TEST.
void DeclarePhase(FlagSet& flags, caffe::Phase* phase);
// Declares --set, which may be given several times.
void DeclareSet(FlagSet& flags, std::vector<std::string>* changes);
// Declares --model, which is required.
void DeclareModel(FlagSet& flags, NetSource* net, std::string_view help = "the net");
// Declares --level, --stage and --set.
void DeclareNetChanges(FlagSet& flags, NetSource* net);
// Declares --weights, a list of files, and --names.
void DeclareWeights(FlagSet& flags, std::vector<std::string>* files);
// Declares --names, which sets TensorNamesFile.
void DeclareNames(FlagSet& flags);
// Declares --iterations, a number of batches of at least 1.
void DeclareIterations(FlagSet& flags, int* iterations);
// Declares --seed, a whole number from 0 on.
void DeclareSeed(FlagSet& flags, int* seed, std::string_view help);
// Declares --json, which selects JSON instead of text.
void DeclareJson(FlagSet& flags, bool* json);
// Declares --force, which allows --out to exist. The verb checks it with RefuseToReplace.
void DeclareForce(FlagSet& flags, bool* force);
// Declares the hidden flag --memory_mode=shared|separate|poisoned, also named --memory.
void DeclareMemoryMode(FlagSet& flags, BufferReuse* mode);

// Declares --bad_records. `text` is what ApplyBadRecords reads: "stop" or "skip=N".
void DeclareBadRecords(FlagSet& flags, std::string* text);
// Declares --db_lock. Verbs call SetDbLock with it before a database is opened.
void DeclareDbLock(FlagSet& flags, DbLock* lock);

// Declares --list, --resize, --mean and other flags of verbs that read image files.
void DeclareImages(FlagSet& flags, ImageInputFlags* images);
// Declares the flags that say how pixels become values: --resize, --mean, --scale and others.
void DeclarePreprocessing(FlagSet& flags, ImageInputFlags* images);

// Declares --gpu, --tf32, --deterministic and --gpu_cache, for verbs that compute.
void DeclareDevice(FlagSet& flags, DeviceOptions* device);

}  // namespace trainer

#include "trainer/run/quick_look.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "batch_size.h"
#include "record_count.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/input/input_files.h"
#include "trainer/net/data_layers.h"

namespace trainer {
namespace {

// Returns how many of `records` records --limit keeps. Throws kUsage for another text than a share
// or a number.
int64_t KeptRecords(const std::string& limit, int64_t records) {
  if (const std::optional<int64_t> number = ParseNumber<int64_t>(limit); number && *number > 0) {
    return std::min(*number, records);
  }
  const std::optional<double> share = ParseNumber<double>(limit);
  if (share && *share > 0 && *share <= 1) {
    return std::max<int64_t>(1, std::llround(*share * static_cast<double>(records)));
  }
  throw Error(ErrorCode::kUsage, Join("--limit=", EscapeControl(limit),
                                      ": give a share of the training records, such as 0.1, or "
                                      "their number, such as 500"));
}

}  // namespace

void ApplyLimit(const std::string& limit, SolverSpec* spec) {
  if (limit.empty()) return;
  KeptRecords(limit, 1);
  bool limits = false;
  for (LayerSpec* const layer : TrainingLayers(spec)) {
    if (BatchSizeOfLayer(*layer) == 0) continue;
    if (const auto files = InputFilesOf(*layer); files && files->balanced) {
      throw Error(ErrorCode::kUsage, layer->Where(),
                  Join("--limit: layer '", layer->name(),
                       "' balances its classes (sampling: BALANCED), and the first records may "
                       "lack some of them; leave --limit out, or remove the field"));
    }
    const int64_t records = CountLayerRecords(*layer);
    if (records == 0) continue;
    const int64_t kept = KeptRecords(limit, records);
    layer->mutable_proto().mutable_data_param()->set_limit(static_cast<uint32_t>(kept));
    LOG(INFO) << EscapeControl(Join("--limit=", limit, ": layer '", layer->name(),
                                    "' reads the first ", kept, " of ", records, " records"));
    limits = true;
  }
  if (limits) return;
  throw Error(ErrorCode::kUsage, {spec->train.net->file},
              "--limit: no data layer of the training net reads a set of records; leave the flag "
              "out");
}

namespace {

// Turns off snapshots and early stopping: a quick look must leave no files and run to its end.
void KeepNothing(caffe::SolverParameter* solver) {
  solver->set_snapshot(0);
  solver->clear_snapshot_every();
  solver->set_snapshot_after_train(false);
  solver->set_keep_last(0);
  solver->set_keep_best(0);
  solver->set_patience(0);
  solver->clear_min_delta();
  solver->clear_best_output();
}

// Sets the number of batches of every test, and one test after the last iteration.
void TestOnceAtTheEnd(int batches, SolverSpec* spec) {
  spec->proto.set_test_initialization(false);
  if (spec->tests.empty()) return;
  spec->proto.set_test_interval(spec->proto.max_iter());
  for (int& test_iter : *spec->proto.mutable_test_iter()) test_iter = batches;
}

// Makes a layer of the training net read each record once in an epoch, in the order of the set.
void ReadInOrder(LayerSpec* layer) {
  caffe::LayerParameter& proto = layer->mutable_proto();
  if (proto.has_data_param()) {
    proto.mutable_data_param()->clear_shuffle();
    proto.mutable_data_param()->clear_sampling();
  }
  if (proto.has_image_data_param()) {
    proto.mutable_image_data_param()->clear_shuffle();
    proto.mutable_image_data_param()->clear_rand_skip();
    proto.mutable_image_data_param()->clear_sampling();
  }
  if (proto.has_hdf5_data_param()) proto.mutable_hdf5_data_param()->clear_shuffle();
}

// Makes a layer of the training net read the first `records` records in the same form in every
// epoch.
void FixRecords(int64_t records, LayerSpec* layer) {
  caffe::LayerParameter& proto = layer->mutable_proto();
  proto.mutable_data_param()->set_limit(static_cast<uint32_t>(records));
  proto.mutable_data_param()->set_augment(false);
  if (proto.has_transform_param()) {
    proto.mutable_transform_param()->clear_mixup();
    proto.mutable_transform_param()->clear_cutmix();
    proto.mutable_transform_param()->clear_mixup_classes();
    proto.mutable_transform_param()->clear_test_crops();
  }
}

// Turns off dropout, stochastic depth, noise and label smoothing of a layer of the training net.
// Throws kUsage at a layer whose outputs would still be random. The samples of an RBM stay: it
// learns from them.
void RemoveRandomness(LayerSpec* layer) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::kUsage, layer->Where(),
                Join("--overfit: layer '", layer->name(), "' ", what,
                     ", so its outputs differ each time the net reads a batch"));
  };
  caffe::LayerParameter& proto = layer->mutable_proto();
  if (layer->type() == "Dropout") proto.mutable_dropout_param()->set_dropout_ratio(0);
  if (layer->type() == "DropPath") proto.mutable_drop_path_param()->set_drop_ratio(0);
  if (layer->type() == "Noise") {
    if (proto.noise_param().kind() == caffe::NoiseParameter::BERNOULLI) {
      refuse("draws its outputs at random (kind: BERNOULLI)");
    }
    proto.mutable_noise_param()->set_amount(0);
  }
  if (proto.pooling_param().pool() == caffe::PoolingParameter::STOCHASTIC) {
    refuse("draws a value of each window at random (pool: STOCHASTIC)");
  }
  if (proto.has_loss_param()) proto.mutable_loss_param()->clear_label_smoothing();
}

// Makes a data layer of a test net read what `training` reads. The layer keeps its name, its tops
// and the rules by which the net includes it.
void ReadSameRecords(const LayerSpec& training, LayerSpec* test) {
  caffe::LayerParameter proto = training.proto();
  proto.set_name(test->name());
  proto.clear_phase();
  if (test->proto().has_phase()) proto.set_phase(test->proto().phase());
  *proto.mutable_include() = test->proto().include();
  *proto.mutable_exclude() = test->proto().exclude();
  *proto.mutable_top() = test->proto().top();
  test->mutable_proto() = std::move(proto);
}

// Makes the data layers of all test nets read what those of the training net read: the layer with
// the same first top, else the first one.
void TestOnTrainingRecords(const std::vector<LayerSpec*>& training, SolverSpec* spec) {
  for (const NetUse& use : spec->tests) {
    for (LayerSpec* const layer : LayersOfUse(use, spec)) {
      if (BatchSizeOfLayer(*layer) == 0 || layer->proto().top_size() == 0) continue;
      if (std::ranges::count(training, layer) > 0) continue;
      const auto same = std::ranges::find_if(training, [&](const LayerSpec* candidate) {
        return candidate->proto().top(0) == layer->proto().top(0);
      });
      ReadSameRecords(same == training.end() ? *training.front() : **same, layer);
    }
  }
}

// Makes the learning rate constant after a warm-up of at most a tenth of the run, and turns off
// decay and averages.
void SimplifySchedule(caffe::SolverParameter* solver) {
  const int warmup = solver->max_iter() / 10;
  solver->set_lr_policy("fixed");
  solver->set_warmup_iter(std::min(solver->warmup_iter(), warmup));
  solver->set_rampup_interval(std::min(solver->rampup_interval(), warmup));
  solver->set_momentum_policy("fixed");
  solver->clear_momentum_stepvalue();
  solver->clear_momentum_value();
  solver->set_weight_decay(0);
  solver->set_weight_decay_policy("fixed");
  solver->set_ema_decay(0);
}

}  // namespace

void ApplyOverfit(int batches, int parts, SolverSpec* spec) {
  constexpr int kLeastIterations = 500, kIterationsPerBatch = 100;
  const int64_t passes = int64_t{batches} * spec->proto.iter_size() * parts;
  std::vector<LayerSpec*> readers;
  for (LayerSpec* const layer : TrainingLayers(spec)) {
    RemoveRandomness(layer);
    const int64_t batch = BatchSizeOfLayer(*layer);
    if (batch == 0) continue;
    ReadInOrder(layer);
    const int64_t records = CountLayerRecords(*layer), needed = passes * batch;
    if (records < needed) {
      throw Error(ErrorCode::kUsage, layer->Where(),
                  Join("--overfit=", batches, ": layer '", layer->name(), "' needs ", needed,
                       " records for that, and has ",
                       records == 0 ? std::string("no set of records")
                                    : Join(records,
                                           "; give fewer batches, or smaller ones with "
                                           "--batch")));
    }
    FixRecords(needed, layer);
    readers.push_back(layer);
  }
  if (readers.empty()) {
    throw Error(ErrorCode::kUsage, {spec->train.net->file},
                "--overfit: no data layer of the training net reads a set of records");
  }
  caffe::SolverParameter& solver = spec->proto;
  solver.set_max_iter(
      std::min(solver.max_iter(), std::max(kLeastIterations, kIterationsPerBatch * batches)));
  solver.set_average_loss(batches);
  SimplifySchedule(&solver);
  KeepNothing(&solver);
  TestOnTrainingRecords(readers, spec);
  TestOnceAtTheEnd(static_cast<int>(passes), spec);
  LOG(INFO) << "--overfit=" << batches << ": training and tests read the same "
            << Counted(batches, "batch") << ", for at most " << solver.max_iter()
            << " iterations at base_lr " << solver.base_lr();
}

void ApplyQuick(SolverSpec* spec) {
  spec->proto.set_max_iter(1);
  KeepNothing(&spec->proto);
  TestOnceAtTheEnd(1, spec);
}

}  // namespace trainer

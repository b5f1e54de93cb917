// Compares the batches of three epochs, and the position after each, with tests/golden/batches, for
// each source, transform, number of ranks and number of threads. This detects any change of a
// random draw, an order or a rounding. TRAINER_UPDATE_BATCHES=1 rewrites the files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "input/every_source.h"
#include "support/source_folder.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/input/bad_records.h"

namespace trainer {
namespace {

constexpr int kGoldenRecords = 13, kGoldenBatch = 3, kGoldenEpochs = 3;

struct GoldenTransform {
  const char* name;
  caffe::Phase phase;
  const char* fields;
};

constexpr GoldenTransform kGoldenTransforms[] = {
    {"crop and mirror", caffe::TRAIN,
     "crop_size: 7 mirror: true scale: 0.017 mean_value: 100 mean_value: 110 mean_value: 120"},
    {"resized crop", caffe::TRAIN, "crop_size: 7 mirror: true random_resized_crop_param { }"},
    {"jitter, lighting and erasing", caffe::TRAIN,
     "crop_size: 7 lighting: 0.1 color_jitter_param { brightness: 0.4 contrast: 0.4 "
     "saturation: 0.4 hue: 0.1 } random_erasing_param { }"},
    {"mixup", caffe::TRAIN, "mirror: true mixup: 0.4 mixup_classes: 13"},
    {"affine maps, operations and blur", caffe::TRAIN,
     "crop_size: 9 vflip: 0.5 random_affine_param { degrees: 30 translate_x: 0.2 min_scale: 0.8 "
     "interpolation: BILINEAR } auto_augment: RANDAUGMENT gaussian_blur_param { }"},
    {"CutMix and mixup", caffe::TRAIN, "cutmix: 1 mixup: 0.4 mixup_classes: 13"},
    {"ten crops", caffe::TEST, "crop_size: 7 test_crops: 10"},
    {"middle of a resized image", caffe::TEST, "crop_size: 7 random_resized_crop_param { }"},
};

uint32_t CrcOfBatch(const Batch& batch, uint32_t crc) {
  const auto add = [&](const auto& elements) {
    crc = Crc32c(elements.data(), elements.size_bytes(), crc);
  };
  if (batch.has_bytes()) {
    add(batch.pixels());
    add(batch.crop_offsets());
    add(batch.mix_weights());
    const auto is_cut = [](const CutBox& box) { return !box.IsEmpty(); };
    if (std::ranges::any_of(batch.cut_boxes(), is_cut)) add(batch.cut_boxes());
  }
  for (int i = 0; i < batch.num_outputs(); ++i) add(batch.output(i));
  return crc;
}

// Returns the checksum after the values that convert bytes to floats.
uint32_t CrcOfNumbers(const Normalization& numbers, uint32_t crc) {
  crc = Crc32c(&numbers.scale, sizeof numbers.scale, crc);
  return Crc32c(numbers.mean.data(), numbers.mean.size() * sizeof(float), crc);
}

// Describes a run of one rank, of two ranks, or of one process that reads for two ranks.
struct GoldenRun {
  const char* name;
  int processes, parts;
};

constexpr GoldenRun kGoldenRuns[] = {
    {"1 rank", 1, 1}, {"2 ranks", 2, 1}, {"2 virtual ranks", 1, 2}};

// Returns checksums of all ranks' batches and the positions after them, and the last position.
// Returns nullopt if the source does not support the run.
std::optional<std::string> GoldenLine(const EverySource& source, const std::string& kind,
                                      const GoldenTransform& transform, const GoldenRun& run,
                                      bool bytes, int threads) {
  const bool tests = transform.phase == caffe::TEST;  // each rank reads whole batches
  if (tests && run.parts > 1) return std::nullopt;
  const int ranks = run.processes * run.parts;
  const int batches = (kGoldenRecords * kGoldenEpochs / kGoldenBatch + ranks - 1) / ranks;
  uint32_t crc = 0, position_crc = 0;
  std::string position;
  for (int rank = 0; rank < run.processes; ++rank) {
    InputEnv env{transform.phase, {1, 2}, {rank, ranks}, threads};
    env.virtual_ranks = run.parts;
    env.bytes = bytes;
    std::unique_ptr<BatchQueue> prefetcher;
    try {
      prefetcher = source.Make(kind, kGoldenBatch, transform.fields, env);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kConfig) << error.what();
      return std::nullopt;  // the source refuses a field
    }
    if (bytes && prefetcher->normalization() == nullptr) return std::nullopt;
    if (bytes) crc = CrcOfNumbers(*prefetcher->normalization(), crc);
    if (tests) prefetcher->SetTestShard({rank, run.processes, 5});
    for (int i = 0; i < batches; ++i) {
      crc = CrcOfBatch(prefetcher->Next(), crc);
      position = prefetcher->position().Encode();
      position_crc = Crc32c(position.data(), position.size(), position_crc);
    }
  }
  char sums[64];
  std::snprintf(sums, sizeof sums, "batches %08x positions %08x last ", crc, position_crc);
  return sums + position;
}

std::string GoldenLines(const EverySource& source, const std::string& kind) {
  std::string lines;
  const bool rows = kind.starts_with("rows");
  for (const GoldenTransform& transform : kGoldenTransforms) {
    const std::string name = rows ? "as stored" : transform.name;
    for (const GoldenRun& run : kGoldenRuns) {
      for (const bool bytes : {false, true}) {
        const auto line = GoldenLine(source, kind, transform, run, bytes, 1);
        EXPECT_EQ(line, GoldenLine(source, kind, transform, run, bytes, 4))
            << "with 4 threads: " << kind << ", " << name << ", " << run.name;
        const std::string form = bytes ? "bytes" : "floats";
        if (line) lines += Join(name, ", ", run.name, ", ", form, ": ", *line, "\n");
      }
    }
    if (rows) break;  // rows are not transformed
  }
  return lines;
}

std::string FileOf(std::string kind) {
  for (char& c : kind) c = c == ' ' ? '_' : c;
  return kind;
}

void ExpectGolden(const std::string& name, const std::string& lines) {
  const std::string path = SourceFolder() + "/tests/golden/batches/" + FileOf(name) + ".txt";
  if (std::getenv("TRAINER_UPDATE_BATCHES") != nullptr) WriteText(path, lines);
  EXPECT_EQ(lines, ReadText(path)) << "TRAINER_UPDATE_BATCHES=1 writes " << path << " anew";
}

class BatchGoldenTest : public testing::TestWithParam<std::string> {};

TEST_P(BatchGoldenTest, BatchesAndPositionsAreThoseOfTheFile) {
  const EverySource source(kGoldenRecords, 11, 13);
  ExpectGolden(GetParam(), GoldenLines(source, GetParam()));
}

std::vector<std::string> GoldenKinds() {
  std::vector<std::string> kinds = EverySource::Kinds();
  kinds.insert(kinds.end(), {"memory", "windows"});
  const std::vector<std::string> balanced = EverySource::BalancedKinds();
  kinds.insert(kinds.end(), balanced.begin(), balanced.end());
  return kinds;
}

std::string NameOfGolden(const testing::TestParamInfo<std::string>& tested) {
  return FileOf(tested.param);
}

INSTANTIATE_TEST_SUITE_P(Sources, BatchGoldenTest, testing::ValuesIn(GoldenKinds()), NameOfGolden);

TEST(BadRecordsGoldenTest, RecordsThatReplaceBadOnesAreThoseOfTheFile) {
  SetMaxBadRecords(100);
  const EverySource source(kGoldenRecords, 11, 13);
  for (const int bad : {0, 5, 6}) {
    WriteBytes(Join(source.folder(), "p", bad, ".ppm"), "P6 13 11 255\n");
  }
  for (const std::string kind : {"images", "images in random order"}) {
    ExpectGolden(kind + " with bad records", GoldenLines(source, kind));
  }
  SetMaxBadRecords(-1);
}

}  // namespace
}  // namespace trainer

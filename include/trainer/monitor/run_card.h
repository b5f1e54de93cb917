#pragma once
// The card of a run, card.json in its folder: what was run, on what, at what cost, and with what
// result.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/process/rapl_meter.h"
#include "trainer/base/text/json.h"
#include "trainer/monitor/best_test.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {

// A file of weights or a solver state. The checksum is hexadecimal: IdentifyFile.
struct CardFile {
  std::string file;  // "": none
  std::string crc32c;
  uint64_t bytes = 0;
};

// Returns the file with its checksum and size; without them if it cannot be read.
CardFile IdentifyForCard(const std::string& path);

// A file or database that a layer of a net reads.
struct CardData {
  std::string net;          // "train", "test 0"
  std::string source;       // the path in the net
  int64_t records = -1;     // -1: unknown
  std::string content;      // equal for copies; or why it cannot be read
  bool is_read = true;      // false: `content` says why it cannot be read
  std::string all_records;  // a checksum of the checksums of all records; "": the set has none
};

// One start of the run; a resumed run has several.
struct CardStart {
  RunInfo info;
  std::string solver_crc32c;  // of solver.prototxt with its nets, hexadecimal
  std::string seed;           // text, because JSON's numbers do not hold 64 bits
  std::string gpu_flags;      // "--tf32 --deterministic", as far as they are on
  CardFile parent;            // the solver state that this start resumed from
  std::vector<CardFile> weights;
  std::vector<CardData> data;
  int64_t first_iter = 0, last_iter = 0;
  int64_t records = 0;  // trained on by all ranks
  double seconds = 0;   // of this start, with its tests and snapshots
  std::vector<EnergyTotal> energy;
};

struct RunCard {
  std::string state;  // "running", "stopped", "finished"
  std::string net;
  int64_t max_iter = 0;
  std::optional<double> loss;  // the last one that was displayed
  std::optional<BestTest> best;
  int64_t test_iter = 0;  // of the last test of the first test net
  std::vector<std::pair<std::string, double>> test;
  CardFile model;  // the newest snapshot
  std::vector<CardStart> starts;
};

// Sums over the starts of a run.
struct CardTotals {
  double hours = 0;
  int64_t records = 0;
  double records_per_second = 0;        // 0: unknown
  std::optional<double> watt_hours;     // empty if no energy could be measured
  std::vector<std::string> unmeasured;  // what is not in `watt_hours`: "node7, package-0: why"
};
CardTotals TotalsOf(const RunCard& card);

Json ToJson(const RunCard& card);
Json ToJson(const EnergyTotal& energy);
// Reads what ToJson wrote. Fields that are missing keep their default values.
EnergyTotal ReadEnergy(const JsonObject& json);
// Reads what ToJson wrote. Returns nothing for an object that is not the card of a run.
std::optional<RunCard> ParseRunCard(const JsonObject& json);
// Reads the card in the folder of a run. Throws kNoInput if there is none or `folder` is not the
// folder of a run, and kData if the file is not a card.
RunCard ReadRunCard(const std::string& folder);

}  // namespace trainer

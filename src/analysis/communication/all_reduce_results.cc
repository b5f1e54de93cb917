#include "trainer/analysis/communication/all_reduce_results.h"

#include <cstdint>
#include <optional>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kKind[] = "sums over ranks";

// Throws kData with the reason and how to make a right file.
[[noreturn]] void RefuseLink(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kData, {path},
              Join(why, "; give a file that 'trainer bench-comm --json=FILE' wrote"));
}

// Returns a number of the file. Throws kData if it is missing.
double RequireNumber(const std::string& path, const JsonObject& json, const char* name) {
  const JsonElement* const value = JsonField(json, name);
  if (value == nullptr || !value->has_number_value()) {
    RefuseLink(path, Join("the file has no number '", name, "'"));
  }
  return value->number_value();
}

// Returns a number from 1 to 2^20, rounded down.
int RequireWhole(const std::string& path, const JsonObject& json, const char* name) {
  constexpr int kMost = 1 << 20;
  const double value = RequireNumber(path, json, name);
  if (!(value >= 1 && value <= kMost)) RefuseLink(path, Join("'", name, "' is ", value));
  return static_cast<int>(value);
}

}  // namespace

void WriteAllReduceResults(const std::string& path, const AllReduceResults& results,
                           const std::vector<double>& mpi_seconds) {
  Json sums = Json::Array();
  for (size_t i = 0; i < results.sums.size(); ++i) {
    sums.Push(Json::Object()
                  .Set("bytes", results.sums[i].bytes)
                  .Set("seconds", results.sums[i].seconds)
                  .Set("mpi_seconds", i < mpi_seconds.size() ? Json(mpi_seconds[i]) : Json()));
  }
  const Json json = Json::Object()
                        .Set("kind", kKind)
                        .Set("ranks", results.ranks)
                        .Set("machines", results.machines)
                        .Set("ranks_per_machine", results.ranks_per_machine)
                        .Set("overlap_cost", results.overlap_cost)
                        .Set("sums", sums);
  WriteWhole(path, json.ToString());
}

AllReduceResults ReadAllReduceResults(const std::string& path) {
  constexpr uint64_t kMost = 1 << 20;
  const std::optional<JsonObject> json = ParseJsonObject(ReadFile(path, kMost));
  if (!json) RefuseLink(path, "the file is not JSON");
  const JsonElement* const sums = JsonField(*json, "sums");
  if (JsonText(*json, "kind") != kKind || sums == nullptr) {
    RefuseLink(path, Join("the file has no ", kKind));
  }
  AllReduceResults results;
  results.ranks = RequireWhole(path, *json, "ranks");
  results.machines = RequireWhole(path, *json, "machines");
  results.ranks_per_machine = RequireWhole(path, *json, "ranks_per_machine");
  results.overlap_cost = RequireNumber(path, *json, "overlap_cost");
  for (const JsonElement& sum : sums->list_value().values()) {
    results.sums.push_back({RequireNumber(path, sum.struct_value(), "bytes"),
                            RequireNumber(path, sum.struct_value(), "seconds")});
  }
  return results;
}

}  // namespace trainer

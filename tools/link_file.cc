#include "link_file.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr char kKind[] = "sums over ranks";

[[noreturn]] void RefuseLink(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::kData, {path},
              Join(why, "; give a file that 'trainer bench-comm --json=FILE' wrote"));
}

double Number(const std::string& path, const google::protobuf::Struct& json, const char* name) {
  const auto found = json.fields().find(name);
  if (found == json.fields().end() || !found->second.has_number_value()) {
    RefuseLink(path, Join("the file has no number '", name, "'"));
  }
  return found->second.number_value();
}

int Whole(const std::string& path, const google::protobuf::Struct& json, const char* name) {
  constexpr int kMost = 1 << 20;
  const double value = Number(path, json, name);
  if (!(value >= 1 && value <= kMost)) RefuseLink(path, Join("'", name, "' is ", value));
  return static_cast<int>(value);
}

}  // namespace

void WriteSums(const std::string& path, const MeasuredSums& measured,
               const std::vector<double>& mpi_seconds) {
  Json sums = Json::Array();
  for (size_t i = 0; i < measured.sums.size(); ++i) {
    sums.Push(Json::Object()
                  .Set("bytes", measured.sums[i].bytes)
                  .Set("seconds", measured.sums[i].seconds)
                  .Set("mpi_seconds", i < mpi_seconds.size() ? Json(mpi_seconds[i]) : Json()));
  }
  const Json json = Json::Object()
                        .Set("kind", kKind)
                        .Set("ranks", measured.ranks)
                        .Set("machines", measured.machines)
                        .Set("ranks_per_machine", measured.ranks_per_machine)
                        .Set("overlap_cost", measured.overlap_cost)
                        .Set("sums", sums);
  WriteWhole(path, json.ToString());
}

MeasuredSums ReadSums(const std::string& path) {
  constexpr uint64_t kMost = 1 << 20;
  google::protobuf::Struct json;
  const auto status = google::protobuf::util::JsonStringToMessage(ReadFile(path, kMost), &json);
  if (!status.ok()) RefuseLink(path, "the file is not JSON");
  const auto kind = json.fields().find("kind"), sums = json.fields().find("sums");
  if (kind == json.fields().end() || kind->second.string_value() != kKind ||
      sums == json.fields().end()) {
    RefuseLink(path, Join("the file has no ", kKind));
  }
  MeasuredSums measured;
  measured.ranks = Whole(path, json, "ranks");
  measured.machines = Whole(path, json, "machines");
  measured.ranks_per_machine = Whole(path, json, "ranks_per_machine");
  measured.overlap_cost = Number(path, json, "overlap_cost");
  for (const auto& sum : sums->second.list_value().values()) {
    measured.sums.push_back(
        {Number(path, sum.struct_value(), "bytes"), Number(path, sum.struct_value(), "seconds")});
  }
  return measured;
}

}  // namespace trainer

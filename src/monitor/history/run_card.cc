#include "trainer/monitor/run_card.h"

#include <glog/logging.h>

#include <algorithm>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"

namespace trainer {
namespace {

constexpr int kCardFormat = 1;
constexpr double kSecondsPerHour = 3600;  // and joules per watt-hour

Json FileJson(const CardFile& file) {
  if (file.file.empty()) return Json();
  return Json::Object()
      .Set("file", file.file)
      .Set("bytes", static_cast<size_t>(file.bytes))
      .Set("crc32c", file.crc32c);
}

CardFile ReadCardFile(const JsonObject& json) {
  return {JsonText(json, "file"), JsonText(json, "crc32c"),
          static_cast<uint64_t>(JsonInteger(json, "bytes"))};
}

Json DataJson(const CardData& data) {
  Json json = Json::Object().Set("net", data.net).Set("source", data.source);
  if (data.records >= 0) json.Set("records", data.records);
  json.Set(data.is_read ? "content" : "not_readable", data.content);
  if (!data.all_records.empty()) json.Set("all_records_crc32c", data.all_records);
  return json;
}

CardData ReadCardData(const JsonObject& json) {
  CardData data;
  data.net = JsonText(json, "net");
  data.source = JsonText(json, "source");
  data.records = JsonInteger(json, "records", -1);
  data.is_read = JsonField(json, "not_readable") == nullptr;
  data.content = JsonText(json, data.is_read ? "content" : "not_readable");
  data.all_records = JsonText(json, "all_records_crc32c");
  return data;
}

// Returns the object in a field; an empty one if it is missing or null.
JsonObject ObjectIn(const JsonObject& json, const char* name) {
  const JsonElement* const value = JsonField(json, name);
  return value == nullptr ? JsonObject() : value->struct_value();
}

Json StartJson(const CardStart& start) {
  Json weights = Json::Array(), data = Json::Array(), energy = Json::Array();
  for (const CardFile& file : start.weights) weights.Push(FileJson(file));
  for (const CardData& set : start.data) data.Push(DataJson(set));
  for (const EnergyTotal& total : start.energy) energy.Push(ToJson(total));
  return Json::Object()
      .Set("environment", ToJson(start.info))
      .Set("gpu_flags", start.gpu_flags)
      .Set("solver_crc32c", start.solver_crc32c)
      .Set("seed", start.seed)
      .Set("parent", FileJson(start.parent))
      .Set("weights", std::move(weights))
      .Set("data", std::move(data))
      .Set("first_iter", start.first_iter)
      .Set("last_iter", start.last_iter)
      .Set("records", start.records)
      .Set("seconds", start.seconds)
      .Set("energy", std::move(energy));
}

CardStart ReadStart(const JsonObject& json) {
  CardStart start;
  start.info = ReadRunInfo(ObjectIn(json, "environment"));
  start.gpu_flags = JsonText(json, "gpu_flags");
  start.solver_crc32c = JsonText(json, "solver_crc32c");
  start.seed = JsonText(json, "seed");
  start.parent = ReadCardFile(ObjectIn(json, "parent"));
  for (const JsonObject& file : JsonObjects(json, "weights")) {
    start.weights.push_back(ReadCardFile(file));
  }
  for (const JsonObject& set : JsonObjects(json, "data")) start.data.push_back(ReadCardData(set));
  start.first_iter = JsonInteger(json, "first_iter");
  start.last_iter = JsonInteger(json, "last_iter");
  start.records = JsonInteger(json, "records");
  start.seconds = JsonNumber(json, "seconds");
  for (const JsonObject& total : JsonObjects(json, "energy")) {
    start.energy.push_back(ReadEnergy(total));
  }
  return start;
}

Json ResultsJson(const RunCard& card) {
  Json json = Json::Object()
                  .Set("iter", card.starts.empty() ? int64_t{0} : card.starts.back().last_iter)
                  .Set("max_iter", card.max_iter)
                  .Set("loss", card.loss ? Json(static_cast<float>(*card.loss)) : Json());
  Json best, test;
  if (card.best) {
    best = Json::Object()
               .Set("output", card.best->output)
               .Set("value", static_cast<float>(card.best->value))
               .Set("iter", card.best->iter)
               .Set("weights", card.best->weights);
  }
  if (!card.test.empty()) {
    Json outputs = Json::Object();
    for (const auto& [name, value] : card.test) outputs.Set(name, static_cast<float>(value));
    test = Json::Object().Set("iter", card.test_iter).Set("outputs", std::move(outputs));
  }
  return json.Set("best_test", std::move(best))
      .Set("last_test", std::move(test))
      .Set("model", FileJson(card.model));
}

void ReadResults(const JsonObject& json, RunCard* card) {
  card->max_iter = JsonInteger(json, "max_iter");
  const JsonElement* const loss = JsonField(json, "loss");
  if (loss != nullptr && loss->has_number_value()) card->loss = loss->number_value();
  const JsonObject best = ObjectIn(json, "best_test"), test = ObjectIn(json, "last_test");
  if (best.fields_size() > 0) {
    card->best = BestTest{JsonText(best, "output"), false, JsonNumber(best, "value"),
                          JsonInteger(best, "iter"), JsonText(best, "weights")};
  }
  card->test_iter = JsonInteger(test, "iter");
  const JsonObject outputs = ObjectIn(test, "outputs");
  for (const auto& [name, value] : outputs.fields()) {
    card->test.emplace_back(name, value.number_value());
  }
  std::ranges::sort(card->test);
  card->model = ReadCardFile(ObjectIn(json, "model"));
}

}  // namespace

CardFile IdentifyForCard(const std::string& path) {
  CardFile file{path, "", 0};
  if (path.empty()) return file;
  try {
    const FileChecksum found = IdentifyFile(path);
    file.crc32c = Join(std::hex, found.crc32c);
    file.bytes = found.file_bytes;
  } catch (const Error& e) {
    VLOG(1) << e.what();  // the snapshot was removed, or the run reports the failure when it reads
  }
  return file;
}

CardTotals TotalsOf(const RunCard& card) {
  CardTotals totals;
  double seconds = 0, joules = 0;
  bool measured = false;
  for (const CardStart& start : card.starts) {
    seconds += start.seconds;
    totals.records += start.records;
    for (const EnergyTotal& total : start.energy) {
      if (total.problem.empty()) {
        measured = true;
        joules += total.joules;
        continue;
      }
      const std::string text = Join(total.host, ", ", total.name, ": ", total.problem);
      if (std::ranges::find(totals.unmeasured, text) == totals.unmeasured.end()) {
        totals.unmeasured.push_back(text);
      }
    }
  }
  totals.hours = seconds / kSecondsPerHour;
  if (seconds > 0) totals.records_per_second = static_cast<double>(totals.records) / seconds;
  if (measured) totals.watt_hours = joules / kSecondsPerHour;
  return totals;
}

Json ToJson(const EnergyTotal& energy) {
  Json json = Json::Object().Set("host", energy.host).Set("name", energy.name);
  if (!energy.problem.empty()) return json.Set("not_readable", energy.problem);
  return json.Set("watt_hours", energy.joules / kSecondsPerHour);
}

EnergyTotal ReadEnergy(const JsonObject& json) {
  return {JsonText(json, "host"), JsonText(json, "name"),
          JsonNumber(json, "watt_hours") * kSecondsPerHour, JsonText(json, "not_readable")};
}

Json ToJson(const RunCard& card) {
  const CardTotals totals = TotalsOf(card);
  Json unmeasured = Json::Array(), starts = Json::Array();
  for (const std::string& text : totals.unmeasured) unmeasured.Push(text);
  for (const CardStart& start : card.starts) starts.Push(StartJson(start));
  return Json::Object()
      .Set("card", kCardFormat)
      .Set("state", card.state)
      .Set("net", card.net)
      .Set("results", ResultsJson(card))
      .Set("hours", totals.hours)
      .Set("records", totals.records)
      .Set("records_per_second",
           totals.records_per_second > 0 ? Json(totals.records_per_second) : Json())
      .Set("energy", Json::Object()
                         .Set("watt_hours", totals.watt_hours ? Json(*totals.watt_hours) : Json())
                         .Set("not_readable", std::move(unmeasured)))
      .Set("starts", std::move(starts));
}

std::optional<RunCard> ParseRunCard(const JsonObject& json) {
  if (JsonNumber(json, "card") != kCardFormat || JsonObjects(json, "starts").empty()) {
    return std::nullopt;
  }
  RunCard card;
  card.state = JsonText(json, "state");
  card.net = JsonText(json, "net");
  ReadResults(ObjectIn(json, "results"), &card);
  for (const JsonObject& start : JsonObjects(json, "starts")) {
    card.starts.push_back(ReadStart(start));
  }
  return card;
}

RunCard ReadRunCard(const std::string& folder) {
  constexpr uint64_t kMostBytes = 64 << 20;
  const std::string path = JoinPath(folder, kCardName);
  if (IsMissing(path)) {
    if (IsMissing(JoinPath(folder, kMetricsName))) ThrowNotARun(folder);
    throw Error(ErrorCode::kNoInput, {AbsolutePath(folder)},
                Join("the run has no ", kCardName, "; 'trainer train --run=DIR' writes one"));
  }
  const std::optional<JsonObject> json = ParseJsonObject(ReadFile(path, kMostBytes));
  const std::optional<RunCard> card = json ? ParseRunCard(*json) : std::nullopt;
  if (card) return *card;
  throw Error(ErrorCode::kData, {AbsolutePath(path)},
              "this is not the card of a run in the format of this version; train again, or "
              "remove the file");
}

}  // namespace trainer

#include "pack/pack_card.h"

#include <cstdint>
#include <utility>

#include "trainer/base/process/program_info.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/predict/blob_source.h"

namespace trainer {
namespace {

Json BlobJson(const std::string& name, const Shape& shape) {
  Json dims = Json::Array();
  for (const int64_t dim : shape.dims()) dims.Push(dim);
  return Json::Object().Set("name", name).Set("shape", std::move(dims));
}

Json PackedFileJson(const std::string& file, uint64_t bytes, const std::string& crc32c) {
  return Json::Object()
      .Set("file", file)
      .Set("bytes", static_cast<size_t>(bytes))
      .Set("crc32c", crc32c);
}

// Appends a line "name        text".
void AddRow(const std::string& name, const std::string& text, std::string* rows) {
  constexpr size_t kNameWidth = 12;
  *rows += name + std::string(kNameWidth - name.size(), ' ') + EscapeControl(text) + "\n";
}

// Returns "data 1x3x224x224".
std::string BlobText(const JsonObject& blob) {
  std::string text;
  const JsonElement* const shape = JsonField(blob, "shape");
  if (shape != nullptr) {
    for (const JsonElement& dim : shape->list_value().values()) {
      text += Join(text.empty() ? " " : "x", JsonInteger(dim));
    }
  }
  return JsonText(blob, "name") + text;
}

std::string FileText(const JsonObject& file) {
  return Join(JsonText(file, "file"), ", ", JsonInteger(file, "bytes"), " bytes, crc32c ",
              JsonText(file, "crc32c"));
}

// Appends lines about the run that trained the model.
void DescribeRun(const RunCard& run, std::string* rows) {
  const CardStart& last = run.starts.back();
  const CardTotals totals = TotalsOf(run);
  AddRow("trained",
         Join(run.state, " at iteration ", last.last_iter, " of ", run.max_iter, ", ",
              totals.records, " records"),
         rows);
  for (const CardStart& start : run.starts) {
    AddRow("command", JoinList(start.info.command, " "), rows);
    AddRow("version",
           Join(start.info.version, ", commit ", start.info.commit, ", on ", start.info.device),
           rows);
  }
  if (run.best) {
    AddRow("best test",
           Join(run.best->output, " ", static_cast<float>(run.best->value), " at iteration ",
                run.best->iter),
           rows);
  }
  std::vector<std::string> outputs;
  for (const auto& [name, value] : run.test) {
    outputs.push_back(Join(name, " ", static_cast<float>(value)));
  }
  if (!outputs.empty()) {
    AddRow("last test", Join(JoinList(outputs), " at iteration ", run.test_iter), rows);
  }
  for (const CardData& data : last.data) {
    AddRow("data",
           Join(data.net, ": ", data.source,
                data.records < 0 ? "" : Join(", ", data.records, " records"),
                data.is_read ? ", content " : ", ", data.content),
           rows);
  }
}

}  // namespace

Json MakePackCard(const Net& net, const PackFacts& facts, const std::vector<TarMember>& members) {
  int64_t parameters = 0;
  for (const Param* param : net.params()) parameters += param->count();
  Json inputs = Json::Array(), outputs = Json::Array(), weights = Json::Array(),
       files = Json::Array();
  for (const InputBlob& input : InputBlobs(net)) {
    inputs.Push(BlobJson(input.name, input.value.shape));
  }
  for (const NetOutput& output : net.outputs()) {
    outputs.Push(BlobJson(output.name, output.value.shape));
  }
  for (const CardFile& file : facts.weights) {
    weights.Push(PackedFileJson(file.file, file.bytes, file.crc32c));
  }
  for (const TarMember& member : members) {
    const uint32_t crc = Crc32c(member.content.data(), member.content.size());
    files.Push(PackedFileJson(member.name, member.content.size(), Join(std::hex, crc)));
  }
  return Json::Object()
      .Set("pack", kPackFormat)
      .Set("net", net.graph().name)
      .Set("parameters", parameters)
      .Set("inputs", std::move(inputs))
      .Set("outputs", std::move(outputs))
      .Set("preparation", facts.preparation)
      .Set("labels", facts.labels)
      .Set("weights", std::move(weights))
      .Set("program", Json::Object().Set("version", ProgramVersion()).Set("commit", BuildCommit()))
      .Set("files", std::move(files))
      .Set("run", facts.run ? ToJson(*facts.run) : Json());
}

std::string DescribePack(const JsonObject& card) {
  std::string rows;
  AddRow("net", Join(JsonText(card, "net"), ", ", JsonInteger(card, "parameters"), " parameters"),
         &rows);
  for (const JsonObject& input : JsonObjects(card, "inputs"))
    AddRow("input", BlobText(input), &rows);
  for (const JsonObject& output : JsonObjects(card, "outputs")) {
    AddRow("output", BlobText(output), &rows);
  }
  const std::string preparation = JsonText(card, "preparation");
  if (!preparation.empty()) AddRow("prepared", preparation, &rows);
  const int64_t labels = JsonInteger(card, "labels");
  if (labels > 0) AddRow("classes", Join(labels, " with names"), &rows);
  for (const JsonObject& file : JsonObjects(card, "weights")) {
    AddRow("weights", FileText(file), &rows);
  }
  const JsonElement* const run = JsonField(card, "run");
  const std::optional<RunCard> trained =
      run == nullptr ? std::nullopt : ParseRunCard(run->struct_value());
  if (trained) DescribeRun(*trained, &rows);
  const JsonElement* const program = JsonField(card, "program");
  if (program != nullptr) {
    AddRow("packed by",
           Join("trainer ", JsonText(program->struct_value(), "version"), ", commit ",
                JsonText(program->struct_value(), "commit")),
           &rows);
  }
  for (const JsonObject& file : JsonObjects(card, "files")) AddRow("file", FileText(file), &rows);
  return rows;
}

}  // namespace trainer

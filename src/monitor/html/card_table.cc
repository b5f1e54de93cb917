#include "card_table.h"

#include <vector>

#include "html.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/run_card.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

using CardRows = std::vector<std::vector<std::string>>;

// Returns the card in the folder of a run; nothing if there is none that can be read.
std::optional<RunCard> CardOf(const RunMetrics& run) {
  if (!Exists(JoinPath(run.path, kCardName))) return std::nullopt;
  try {
    return ReadRunCard(run.path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::string CardFileText(const CardFile& file) {
  if (file.crc32c.empty()) return file.file;
  return Join(file.file, ", ", Bytes(file.bytes), ", CRC32C ", file.crc32c);
}

// Adds a row for each start, with its iterations and where its weights came from.
void AddStarts(const RunCard& card, CardRows* rows) {
  for (const CardStart& start : card.starts) {
    std::vector<std::string> parts = {
        Join("iterations ", start.first_iter, " to ", start.last_iter), start.info.host,
        Join(start.info.commit, " (", start.info.version, ")"), Counted(start.info.ranks, "rank"),
        Join(Fixed(start.seconds / 3600, 3), " hours")};
    if (!start.parent.file.empty()) parts.push_back("from " + CardFileText(start.parent));
    for (const CardFile& file : start.weights) parts.push_back("from " + CardFileText(file));
    rows->push_back({"start", JoinList(parts, "; ")});
  }
}

// Adds what the last start reads and computes with.
void AddInputs(const CardStart& start, CardRows* rows) {
  rows->push_back({"seed", start.seed});
  rows->push_back({"solver", "CRC32C " + start.solver_crc32c});
  if (!start.gpu_flags.empty()) rows->push_back({"GPU", start.gpu_flags});
  for (const CardData& data : start.data) {
    std::string text = Join(data.net, ": ", data.source, ", ", data.content);
    if (!data.all_records.empty()) text += ", checksum of all records " + data.all_records;
    rows->push_back({"data", text});
  }
  std::vector<std::string> libraries = {"oneDNN " + start.info.onednn};
  for (const auto& [name, version] : start.info.libraries) {
    libraries.push_back(Join(name, " ", version));
  }
  rows->push_back({"libraries", JoinList(libraries, "; ")});
}

// Adds time, speed and energy over all starts.
void AddCost(const RunCard& card, std::optional<double> carbon, CardRows* rows) {
  const CardTotals totals = TotalsOf(card);
  rows->push_back({"hours", Fixed(totals.hours, 3)});
  rows->push_back({"records", Join(totals.records, ", ", Fixed(totals.records_per_second, 1),
                                   " per second with tests and snapshots")});
  if (totals.watt_hours) {
    rows->push_back({"energy", Fixed(*totals.watt_hours, 3) + " Wh"});
    if (carbon) rows->push_back({"CO2", Fixed(*totals.watt_hours / 1000 * *carbon, 2) + " g"});
  }
  for (const std::string& text : totals.unmeasured) rows->push_back({"energy not measured", text});
}

}  // namespace

std::string CardHtml(const RunMetrics& run, std::optional<double> carbon) {
  const std::optional<RunCard> card = CardOf(run);
  if (!card) return "";
  CardRows rows;
  AddStarts(*card, &rows);
  AddInputs(card->starts.back(), &rows);
  AddCost(*card, carbon, &rows);
  if (!card->model.file.empty()) rows.push_back({"model", CardFileText(card->model)});
  return "<details open><summary>Run card</summary>\n" + TableHtml({"", ""}, rows) + "</details>\n";
}

}  // namespace trainer

#include "trainer/monitor/run_comparison.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "solver_differences.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/text.h"
#include "trainer/checkpoint/model_file.h"
#include "trainer/config/text/prototxt.h"
#include "trainer/monitor/run_card.h"
#include "trainer/monitor/run_directory.h"

namespace trainer {
namespace {

constexpr char kWeights[] = "weights";  // the fact about the newest snapshot

// One property of a run, as the comparison shows it.
struct CardFact {
  DifferenceKind kind = DifferenceKind::kAffects;
  std::string what, value;
  bool is_known = true;  // false: `value` says why the property is unknown
};

// Returns the starts that led to the last one. A start whose iterations a later start repeated from
// its own beginning has left nothing in the weights.
std::vector<const CardStart*> ContributingStarts(const RunCard& card) {
  std::vector<const CardStart*> starts;
  for (size_t i = card.starts.size(); i-- > 0;) {
    const CardStart& start = card.starts[i];
    if (starts.empty() || start.first_iter < starts.back()->first_iter) starts.push_back(&start);
  }
  std::ranges::reverse(starts);
  return starts;
}

// Returns the values of a property at each start, without repetitions: "CPU, 2 threads, then CPU, 4
// threads".
template <class F>
std::string OverStarts(const std::vector<const CardStart*>& starts, F value_of) {
  std::vector<std::string> values;
  for (const CardStart* start : starts) {
    std::string value = value_of(*start);
    if (values.empty() || values.back() != value) values.push_back(std::move(value));
  }
  return JoinList(values, ", then ");
}

// Returns OverStarts, or a sentence if the starts have the same value.
template <class F>
std::string ChangesOver(const std::vector<const CardStart*>& starts, F value_of) {
  const std::string all = OverStarts(starts, value_of);
  return all == value_of(*starts.back()) ? "the same at all starts" : all;
}

std::string ContentOf(const CardStart& start) {
  std::vector<std::string> sets;
  for (const CardData& set : start.data) sets.push_back(set.content);
  return JoinList(sets, " and ");
}

std::string VersionOf(const CardStart& start, const std::string& library) {
  for (const auto& [name, version] : start.info.libraries) {
    if (name == library) return version;
  }
  return "none";
}

// Decoders and the GPU's libraries compute numbers; databases return bytes as they were stored.
bool IsHarmlessLibrary(const std::string& name) {
  return name == "LMDB" || name == "LevelDB" || name == "HDF5" || name == "protobuf";
}

// Returns where the weights of the first start came from, without names of files.
std::string OriginOf(const CardStart& start) {
  const auto text = [](const CardFile& file) {
    return file.crc32c.empty() ? Join(file.file, ", which cannot be read")
                               : Join(file.bytes, " bytes, checksum ", file.crc32c);
  };
  if (!start.parent.file.empty()) return "a snapshot of " + text(start.parent);
  std::vector<std::string> files;
  for (const CardFile& file : start.weights) files.push_back(text(file));
  return files.empty() ? "initial weights" : "weights of " + JoinList(files, " and ");
}

// Returns the data sets of the last start, numbered within each net.
std::vector<CardFact> DataFacts(const CardStart& start) {
  std::vector<CardFact> facts;
  int number = 0;
  for (size_t i = 0; i < start.data.size(); ++i) {
    const CardData& set = start.data[i];
    number = i > 0 && start.data[i - 1].net == set.net ? number + 1 : 1;
    std::string value = set.content;
    if (!set.all_records.empty()) value += ", all records " + set.all_records;
    facts.push_back(
        {DifferenceKind::kAffects,
         Join("data of the ", set.net, " net", number > 1 ? Join(" (", number, ")") : ""), value,
         set.is_read});
    facts.push_back(
        {DifferenceKind::kHarmless,
         Join("path of the ", set.net, " net's data", number > 1 ? Join(" (", number, ")") : ""),
         set.source});
  }
  return facts;
}

std::string NumberText(double value) { return Join(static_cast<float>(value)); }

std::vector<CardFact> ResultFacts(const RunCard& card) {
  constexpr auto kResult = DifferenceKind::kResult;
  const CardTotals totals = TotalsOf(card);
  std::vector<CardFact> facts = {
      {kResult, "state", card.state},
      {kResult, "iterations", Join(card.starts.back().last_iter)},
      {kResult, "starts", Join(card.starts.size())},
      {kResult, "last loss", card.loss ? NumberText(*card.loss) : "none"},
      {kResult, "best test",
       card.best
           ? Join(card.best->output, " ", NumberText(card.best->value), " at ", card.best->iter)
           : "none"},
      {kResult, kWeights, card.model.crc32c.empty() ? "none" : card.model.crc32c}};
  for (const auto& [name, value] : card.test) {
    facts.push_back({kResult, "last test " + name, NumberText(value)});
  }
  facts.push_back({kResult, "hours", NumberText(totals.hours)});
  facts.push_back({kResult, "records/s", NumberText(totals.records_per_second)});
  facts.push_back({kResult, "energy",
                   totals.watt_hours ? NumberText(*totals.watt_hours) + " Wh" : "not measured"});
  return facts;
}

// Returns all properties that the card has, in the order of the report.
std::vector<CardFact> FactsOf(const RunCard& card) {
  using Kind = DifferenceKind;
  const std::vector<const CardStart*> starts = ContributingStarts(card);
  std::vector<CardFact> facts;
  const auto add = [&](Kind kind, const char* what, auto value_of) {
    facts.push_back({kind, what, OverStarts(starts, value_of)});
  };
  add(Kind::kAffects, "program", [](const CardStart& s) { return s.info.program; });
  add(Kind::kAffects, "commit", [](const CardStart& s) { return s.info.commit; });
  add(Kind::kAffects, "build", [](const CardStart& s) { return s.info.build; });
  add(Kind::kAffects, "seed", [](const CardStart& s) { return s.seed; });
  facts.push_back({Kind::kAffects, "solver of the starts",
                   ChangesOver(starts, [](const CardStart& s) { return s.solver_crc32c; })});
  facts.push_back({Kind::kAffects, "data of the starts", ChangesOver(starts, ContentOf)});
  facts.push_back({Kind::kAffects, "start", OriginOf(*starts.front())});
  add(Kind::kAffects, "ranks", [](const CardStart& s) { return Join(s.info.ranks); });
  add(Kind::kAffects, "device", [](const CardStart& s) { return s.info.device; });
  add(Kind::kAffects, "flags of the GPU", [](const CardStart& s) { return s.gpu_flags; });
  add(Kind::kAffects, "oneDNN", [](const CardStart& s) { return s.info.onednn; });
  for (CardFact& fact : DataFacts(*starts.back())) facts.push_back(std::move(fact));
  for (const auto& [name, version] : starts.back()->info.libraries) {
    const std::string& library = name;
    add(IsHarmlessLibrary(name) ? Kind::kHarmless : Kind::kAffects, library.c_str(),
        [&](const CardStart& s) { return VersionOf(s, library); });
  }
  add(Kind::kHarmless, "host", [](const CardStart& s) { return s.info.host; });
  add(Kind::kHarmless, "processor", [](const CardStart& s) { return s.info.processor; });
  add(Kind::kHarmless, "command", [](const CardStart& s) { return JoinList(s.info.command, " "); });
  add(Kind::kHarmless, "folder", [](const CardStart& s) { return s.info.folder; });
  for (CardFact& fact : ResultFacts(card)) facts.push_back(std::move(fact));
  return facts;
}

// Compares properties of the same name.
void CompareFacts(const std::vector<CardFact>& a, const std::vector<CardFact>& b,
                  std::vector<RunDifference>* differences) {
  const auto in = [](const std::vector<CardFact>& facts, const std::string& what) {
    const auto found = std::ranges::find(facts, what, &CardFact::what);
    return found == facts.end() ? nullptr : &*found;
  };
  for (const CardFact& fact : a) {
    const CardFact* const other = in(b, fact.what);
    const std::string value = other == nullptr ? "none" : other->value;
    const bool known = fact.is_known && (other == nullptr || other->is_known);
    if (known && value == fact.value) continue;
    differences->push_back({fact.kind, fact.what, Join(fact.value, " -> ", value)});
  }
  for (const CardFact& fact : b) {
    if (in(a, fact.what) == nullptr) {
      differences->push_back({fact.kind, fact.what, Join("none -> ", fact.value)});
    }
  }
}

// Reads the newest snapshot of a run. Returns nothing if it was removed or replaced since.
std::optional<caffe::NetParameter> ModelOf(const RunCard& card) {
  const std::string& file = card.model.file;
  for (const std::string& path : {JoinPath(card.starts.back().info.folder, file), file}) {
    const CardFile found = IdentifyForCard(path);
    if (found.crc32c.empty() || found.crc32c != card.model.crc32c) continue;
    try {
      return ReadModelAsWritten(path);
    } catch (const Error&) {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

// Returns whether the newest snapshots have the same weights. The checksums of equal weights
// differ if the nets in the files have other paths.
bool HaveEqualWeights(const RunCard& a, const RunCard& b) {
  const auto model_a = ModelOf(a), model_b = ModelOf(b);
  if (!model_a || !model_b) return false;
  const auto learned = [](const caffe::NetParameter& net) {
    std::map<std::string, const caffe::LayerParameter*> layers;
    for (const caffe::LayerParameter& layer : net.layer()) {
      if (layer.blobs_size() > 0) layers[layer.name()] = &layer;
    }
    return layers;
  };
  return std::ranges::equal(learned(*model_a), learned(*model_b), [](const auto& x, const auto& y) {
    const auto bytes = [](const caffe::BlobProto& blob) { return blob.SerializeAsString(); };
    return x.first == y.first &&
           std::ranges::equal(x.second->blobs(), y.second->blobs(), {}, bytes, bytes);
  });
}

// Reads the solver of the run's last start. Throws kData if it is not the one that the card has.
caffe::SolverParameter SolverOfRun(const std::string& folder, const RunCard& card) {
  const std::string path = JoinPath(folder, kSolverName);
  const std::string text = ReadTextFile(path);
  const std::string found = Crc32cDigits(text);
  const std::string& wanted = card.starts.back().solver_crc32c;
  if (found != wanted) {
    throw Error(
        ErrorCode::kData, {AbsolutePath(path)},
        Join("this is not the solver of the run: its checksum is ", found, ", and the card has ",
             wanted, "; the file was changed after the run, so restore it or train again"));
  }
  caffe::SolverParameter solver;
  ParseText(path, &solver);
  return solver;
}

}  // namespace

std::vector<RunDifference> CompareRuns(const std::string& a, const std::string& b) {
  const RunCard card_a = ReadRunCard(a), card_b = ReadRunCard(b);
  std::vector<RunDifference> differences =
      CompareSolvers(SolverOfRun(a, card_a), SolverOfRun(b, card_b));
  CompareFacts(FactsOf(card_a), FactsOf(card_b), &differences);
  const auto weights = std::ranges::find(differences, kWeights, &RunDifference::what);
  if (weights != differences.end() && HaveEqualWeights(card_a, card_b)) differences.erase(weights);
  std::ranges::stable_sort(differences, {}, &RunDifference::kind);
  return differences;
}

bool AffectsResults(const std::vector<RunDifference>& differences) {
  return std::ranges::any_of(
      differences, [](const RunDifference& d) { return d.kind == DifferenceKind::kAffects; });
}

std::string ToText(const std::vector<RunDifference>& differences) {
  std::string text;
  size_t affects = 0;
  for (const RunDifference& difference : differences) {
    const char* const kind = difference.kind == DifferenceKind::kAffects    ? "affects results"
                             : difference.kind == DifferenceKind::kHarmless ? "no effect"
                                                                            : "result";
    std::string head = kind;
    head.resize(17, ' ');
    text += EscapeControl(Join(head, difference.what, ": ", difference.text)) + "\n";
    affects += difference.kind == DifferenceKind::kAffects ? 1 : 0;
  }
  const std::string count = Counted(differences.size(), "difference");
  return text + (affects == 0 ? Join(count, ", none of them affects results\n")
                              : Join(count, ", ", affects, " of them affect",
                                     affects == 1 ? "s" : "", " results\n"));
}

}  // namespace trainer

#include "card_recorder.h"

#include <glog/logging.h>

#include <optional>
#include <utility>
#include <vector>

#include "ranks/data_fingerprint.h"
#include "trainer/backend/device/gpu.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/host_info.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"
#include "trainer/config/resolved_solver.h"
#include "trainer/monitor/test_score.h"
#include "trainer/storage/checksums.h"
#include "trainer/strategies/strategy.h"

namespace trainer {
namespace {

// Returns the flags of the GPU that change numbers, as far as they are on; "" on the CPU.
std::string GpuFlagsOf(const DeviceChoice& choice) {
  std::vector<std::string> flags;
  if (choice.kind != DeviceKind::kCpu && choice.gpu.tf32) flags.push_back("--tf32");
  if (choice.kind != DeviceKind::kCpu && choice.gpu.deterministic) {
    flags.push_back("--deterministic");
  }
  return JoinList(flags, " ");
}

// Returns what this rank measures.
EnergySources SourcesOf(const Device& device, const DeviceChoice& choice, const World* world,
                        const std::string& powercap) {
  EnergySources sources;
  sources.host = HostName();
  const bool first_of_host = world == nullptr || world->topology().host_local_rank == 0;
  if (first_of_host) sources.rapl_folder = powercap;
  if (device.kind() == DeviceKind::kCpu) return sources;
  const std::vector<std::string> buses = ListGpus();
  const auto id = static_cast<size_t>(choice.gpu.id);
  sources.gpu = id < buses.size() ? "GPU " + buses[id] : Join("GPU ", id);
  sources.gpu_monitor = MakeGpuMonitor(device, &sources.gpu_problem);
  return sources;
}

// Returns a checksum over the checksums of all records of a set; "" if it has no file of them.
std::string AllRecords(const std::string& set) {
  const std::string path = ChecksumPath(set);
  if (!Exists(path)) return "";
  try {
    const std::vector<uint32_t> sums = ReadChecksums(path);
    return Join(std::hex, Crc32c(sums.data(), sums.size() * sizeof(uint32_t)));
  } catch (const Error& e) {
    VLOG(1) << e.what();  // the reader of the records reports it
    return "";
  }
}

// Appends fingerprints of the data that a net reads. `net` is "train" or "test 0".
void AddData(const std::string& net, const NetUse& use, std::vector<CardData>* data) {
  for (const DataFingerprint& print : FingerprintData(use)) {
    data->push_back(
        {net, print.path, print.records, print.content, print.is_read, AllRecords(print.opened)});
  }
}

CardStart DescribeStart(const SolverSpec& spec, const RunInfo& info, const SolverOptions& options) {
  CardStart start;
  start.info = info;
  const std::string solver = ResolvedText(spec);
  start.solver_crc32c = Crc32cDigits(solver);
  start.parent = IdentifyForCard(options.snapshot);
  for (const std::string& file : options.weights) start.weights.push_back(IdentifyForCard(file));
  AddData("train", spec.train, &start.data);
  for (size_t i = 0; i < spec.tests.size(); ++i) {
    AddData(Join("test ", i), spec.tests[i], &start.data);
  }
  return start;
}

// Returns the energy as a JSON object, in which one rank sends it to another.
std::string EnergyText(const std::vector<EnergyTotal>& energy) {
  Json list = Json::Array();
  for (const EnergyTotal& total : energy) list.Push(ToJson(total));
  return Json::Object().Set("energy", std::move(list)).ToLine();
}

// Appends what EnergyText has written.
void ReadEnergyText(const std::string& text, std::vector<EnergyTotal>* energy) {
  const std::optional<JsonObject> json = ParseJsonObject(text);
  const JsonElement* const list = json ? JsonField(*json, "energy") : nullptr;
  if (list == nullptr) return;
  for (const JsonElement& total : list->list_value().values()) {
    energy->push_back(ReadEnergy(total.struct_value()));
  }
}

}  // namespace

CardRecorder::CardRecorder(const Device& device, const DeviceChoice& choice, const World* world,
                           const std::string& powercap)
    : gpu_flags_(GpuFlagsOf(choice)),
      others_measure_(world != nullptr &&
                      (world->topology().nodes() > 1 || device.kind() != DeviceKind::kCpu)),
      energy_(SourcesOf(device, choice, world, powercap)) {}

void CardRecorder::AddObserver(const std::string& folder, const SolverSpec& spec,
                               const RunInfo& info, const SolverOptions& options,
                               ObserverList* observers) {
  CardObserver::Options card;
  card.folder = folder;
  card.start = DescribeStart(spec, info, options);
  card.start.gpu_flags = gpu_flags_;
  card.resumes = !options.snapshot.empty();
  card.best_output = ScoredOutput(spec.proto);
  card.energy = &energy_;
  auto observer = std::make_unique<CardObserver>(std::move(card));
  observer_ = observer.get();
  observers->Add(std::move(observer));
}

void CardRecorder::GatherEnergy(const SolverSpec& spec, Communicator& group) {
  if (!others_measure_) return;
  std::vector<EnergyTotal> energy;
  if (MakeStrategy(spec, group.rank().size)->traits().asynchronous) {
    energy.push_back({"other ranks", "hosts and GPUs", 0,
                      Join("strategy '", spec.proto.strategy(),
                           "' is asynchronous, so rank 0 does not wait for their counters")});
  } else {
    for (const std::string& text : group.Gather(EnergyText(energy_.Read()))) {
      ReadEnergyText(text, &energy);
    }
  }
  if (observer_ != nullptr) observer_->AddEnergy(energy);
}

}  // namespace trainer

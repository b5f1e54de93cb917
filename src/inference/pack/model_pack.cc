#include "trainer/inference/pack/model_pack.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "pack/pack_card.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/memory_file.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/sealed_tar.h"

namespace trainer {
namespace {

constexpr auto kPackMembers =
    std::to_array<std::string_view>({kPackCardName, kPackNetName, kPackWeightsName, kPackLabelsName,
                                     kPackMeanName, kPackTableName});

bool HasMember(const std::vector<TarMember>& members, std::string_view name) {
  return std::ranges::find(members, name, &TarMember::name) != members.end();
}

// Returns the members of a pack. Throws as OpenPack does.
std::vector<TarMember> ReadPack(const std::string& path) {
  std::vector<TarMember> members = ReadSealedTar(path);
  for (const TarMember& member : members) {
    if (std::ranges::find(kPackMembers, member.name) != kPackMembers.end()) continue;
    throw Error(ErrorCode::kData, {path},
                Join("the pack has a file '", EscapeControl(member.name),
                     "', which this version does not know; read it with the version that wrote "
                     "it"));
  }
  for (const char* name : {kPackCardName, kPackNetName, kPackWeightsName}) {
    if (HasMember(members, name)) continue;
    throw Error(ErrorCode::kData, {path},
                Join("this is not a pack of 'trainer pack': it has no file '", name, "'"));
  }
  return members;
}

}  // namespace

bool IsPack(const std::string& path) {
  if (path.ends_with(".trainer")) return true;
  try {
    return Exists(path) && IsTarThatBeginsWith(path, kPackCardName);
  } catch (const Error&) {
    return false;  // the function that reads the file reports why
  }
}

ModelPack OpenPack(const std::string& path) {
  std::vector<TarMember> members = ReadPack(path);
  for (TarMember& member : members) {
    AddMemoryFile(JoinPath(path, member.name), member.content);
    member.content = std::string();  // avoids a second copy in memory
  }
  return {.net = JoinPath(path, kPackNetName),
          .weights = JoinPath(path, kPackWeightsName),
          .labels = HasMember(members, kPackLabelsName) ? JoinPath(path, kPackLabelsName) : ""};
}

void UsePack(NetSource* source, std::vector<std::string>* weights, std::string* labels) {
  if (weights != nullptr) {
    for (std::string& file : *weights) {
      if (IsPack(file)) file = OpenPack(file).weights;
    }
  }
  if (source == nullptr || source->file.empty() || !IsPack(source->file)) return;
  const ModelPack pack = OpenPack(source->file);
  source->file = pack.net;
  if (weights != nullptr && weights->empty()) *weights = {pack.weights};
  if (labels != nullptr && labels->empty()) *labels = pack.labels;
}

NetSpec LoadModel(const NetSource& source, std::vector<std::string>* weights) {
  NetSource opened = source;
  UsePack(&opened, weights);
  return LoadNet(opened);
}

std::string PackCardJson(const std::string& path) {
  const std::vector<TarMember> members = ReadPack(path);
  return std::ranges::find(members, std::string_view(kPackCardName), &TarMember::name)->content;
}

std::string PackCardText(const std::string& path) {
  constexpr size_t kMostBytes = size_t{16} << 20;  // parsing needs many times as much memory
  const std::string json = PackCardJson(path);
  const std::optional<JsonObject> card =
      json.size() > kMostBytes ? std::nullopt : ParseJsonObject(json);
  if (card && JsonNumber(*card, "pack") == kPackFormat) return DescribePack(*card);
  throw Error(ErrorCode::kData, {JoinPath(path, kPackCardName)},
              "this is not the card of a pack in the format of this version");
}

}  // namespace trainer

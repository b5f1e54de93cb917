#pragma once
// Reads a pack, which is a trained model in one file. A pack is a tar file with the net, its
// weights, the names of its classes, the files that prepare its inputs, and a card that says how
// the model was trained. See `trainer pack`.

#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/net_state.h"

namespace trainer {

// Names of the members. The card must be the first member.
inline constexpr char kPackCardName[] = "card.json";
inline constexpr char kPackNetName[] = "deploy.prototxt";
inline constexpr char kPackWeightsName[] = "weights.safetensors";
inline constexpr char kPackLabelsName[] = "labels.txt";
inline constexpr char kPackMeanName[] = "mean.binaryproto";
inline constexpr char kPackTableName[] = "table.json";

// Holds the paths of the members of an open pack, e.g. "m.trainer/deploy.prototxt". All functions
// that read files find these members in memory until a MemoryFilesScope or the program ends.
struct ModelPack {
  std::string net, weights;
  std::string labels;  // "" if the pack has none
};

// Returns whether the file is a pack, judged by its name, FILE.trainer, or by its first bytes.
// Returns false if the file cannot be read.
bool IsPack(const std::string& path);

// Reads and verifies a pack. No other thread may read files of the same pack meanwhile. Throws
// kData, naming the file, if the file is truncated or differs from what `trainer pack` wrote; and
// as ReadSealedTar and AddMemoryFile do.
ModelPack OpenPack(const std::string& path);

// If `source` names a pack, opens the pack and replaces the file in `source` by the pack's net. If
// `weights` or `labels` are empty, fills them with the pack's weights or class names. Replaces
// packs among `weights` by their weights. Each pointer may be null. Throws as OpenPack does.
void UsePack(NetSource* source, std::vector<std::string>* weights, std::string* labels = nullptr);

// Loads the net that `source` names, a net file or a pack; see UsePack. Throws as UsePack and
// LoadNet do.
NetSpec LoadModel(const NetSource& source, std::vector<std::string>* weights = nullptr);

// Returns the card of a pack as readable text, or as JSON. Throws kData if the card is damaged, and
// as OpenPack does.
std::string PackCardText(const std::string& path);
std::string PackCardJson(const std::string& path);

}  // namespace trainer

#pragma once
// A trained model as one file: a tar file with the net, its weights, the names of its classes, what
// prepares its inputs, and a card that says where it comes from. See `trainer pack`.

#include <string>
#include <vector>

#include "trainer/config/net_spec.h"
#include "trainer/config/net_state.h"

namespace trainer {

// Names of the members. The card is the first.
inline constexpr char kPackCardName[] = "card.json";
inline constexpr char kPackNetName[] = "deploy.prototxt";
inline constexpr char kPackWeightsName[] = "weights.safetensors";
inline constexpr char kPackLabelsName[] = "labels.txt";
inline constexpr char kPackMeanName[] = "mean.binaryproto";
inline constexpr char kPackTableName[] = "table.json";

// Paths of the members of a pack that was opened: "m.trainer/deploy.prototxt". All functions that
// read files find them, in memory, until a MemoryFilesScope or the program ends.
struct ModelPack {
  std::string net, weights;
  std::string labels;  // "" if the pack has none
};

// Returns whether the file is a pack, by its name, FILE.trainer, or its first bytes. Returns false
// if it cannot be read.
bool IsPack(const std::string& path);

// Reads and verifies a pack. No other thread may be reading files of the same pack. Throws kData,
// naming the file, if it is truncated or differs from what `trainer pack` wrote; as ReadSealedTar
// and AddMemoryFile do.
ModelPack OpenPack(const std::string& path);

// If `source` names a pack, opens it and sets the file to the pack's net. Then empty `weights`
// become the pack's weights, and empty `labels` its names of classes. Packs among `weights` become
// their weights. Each pointer may be null. Throws as OpenPack.
void UsePack(NetSource* source, std::vector<std::string>* weights, std::string* labels = nullptr);

// Loads the net that `source` names: a net file or a pack, see UsePack. Throws as LoadNet, too.
NetSpec LoadModel(const NetSource& source, std::vector<std::string>* weights = nullptr);

// Returns the card of a pack as text for people, or as JSON. Throws as OpenPack, and kData if the
// card is damaged.
std::string PackCardText(const std::string& path);
std::string PackCardJson(const std::string& path);

}  // namespace trainer

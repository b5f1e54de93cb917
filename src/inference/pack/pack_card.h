#pragma once
// Writes and reads the card of a pack, card.json. The card says what the model is, what it was
// trained on, and what the pack contains.

#include <optional>
#include <string>
#include <vector>

#include "trainer/base/text/json.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/monitor/run_card.h"
#include "trainer/net/net.h"
#include "trainer/storage/sealed_tar.h"

namespace trainer {

inline constexpr int kPackFormat = 1;

struct PackFacts {
  std::string preparation;  // comment in the net's file; "": no comment
  int64_t labels = 0;       // number of class names; 0: no names
  std::vector<CardFile> weights;
  std::optional<RunCard> run;
};

// Returns the card. `members` are the files of the pack except the card.
Json MakePackCard(const Net& net, const PackFacts& facts, const std::vector<TarMember>& members);

// Returns a card from MakePackCard as readable text. Leaves out missing fields.
std::string DescribePack(const JsonObject& card);

}  // namespace trainer

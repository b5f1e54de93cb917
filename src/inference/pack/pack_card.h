#pragma once
// The card of a pack, card.json: what the model is, what it was trained on, and what is in the
// file.

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
  std::string preparation;  // the comment of the net's file; "" for none
  int64_t labels = 0;       // names of classes; 0: none
  std::vector<CardFile> weights;
  std::optional<RunCard> run;
};

// Returns the card. `members`: the files of the pack except the card.
Json MakePackCard(const Net& net, const PackFacts& facts, const std::vector<TarMember>& members);

// Returns what MakePackCard made as text for people. Fields that are missing are left out.
std::string DescribePack(const JsonObject& card);

}  // namespace trainer

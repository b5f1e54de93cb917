#include "trainer/analysis/summary/solver_reference.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "summary/rule_docs.h"
#include "summary/schema_json.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/config/schema_doc.h"
#include "trainer/optim/optimizer.h"

namespace trainer {
namespace {

constexpr const char* kSymbols =
    "w is a weight, g its gradient with weight decay added unless the text says otherwise, lr the "
    "learning rate times the layer's lr_mult.";

// Returns type, default and comment of a solver field. Throws kUsage for an unknown one.
std::string SolverFieldText(const std::string& name) {
  const MessageDoc doc = DescribeMessage("SolverParameter");
  const auto field = std::ranges::find(doc.fields, name, &FieldDoc::name);
  if (field == doc.fields.end()) {
    std::vector<std::string> names;
    for (const FieldDoc& known : doc.fields) names.push_back(known.name);
    throw Error(ErrorCode::kUsage, Join("no solver field '", name, "'.", DidYouMean(name, names),
                                        " 'trainer solver' lists the fields"));
  }
  return Join(field->name, ": ", field->type, field->default_value.empty() ? "" : ", default ",
              field->default_value, "\n\n", Wrap(field->comment, 0), "\n");
}

}  // namespace

std::string SolverFieldsText() {
  return Join(Wrap("update rules (field type): " + JoinList(OptimizerNames()), 0), "\n\n",
              Explain("SolverParameter"));
}

std::string SolverReference(const std::string& name) {
  const std::vector<std::string> rules = OptimizerNames();
  if (std::ranges::find(rules, name) == rules.end()) return SolverFieldText(name);
  return Join(name, "\n\n", Wrap(RuleText(name), 0), "\n", Wrap(kSymbols, 0), "\n");
}

Json SolverJson() {
  Json rules = Json::Object();
  for (const std::string& rule : OptimizerNames()) rules.Set(rule, RuleText(rule));
  return Json::Object()
      .Set("rules", std::move(rules))
      .Set("symbols", kSymbols)
      .Set("messages", MessagesJson({"SolverParameter"}));
}

}  // namespace trainer

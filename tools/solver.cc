#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "rule_docs.h"
#include "schema_json.h"
#include "shared_flags.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/verb.h"
#include "trainer/config/schema_doc.h"
#include "trainer/steps/step_rule.h"

namespace trainer {
namespace {

constexpr const char* kSymbols =
    "w is a weight, g its gradient with weight decay added unless the text says otherwise, lr the "
    "learning rate times the layer's lr_mult.";

void PrintRule(const std::string& rule) {
  std::cout << rule << "\n\n" << Wrap(RuleText(rule), 0) << "\n" << Wrap(kSymbols, 0) << "\n";
}

void PrintSolverJson() {
  Json rules = Json::Object();
  for (const std::string& rule : StepRuleNames()) rules.Set(rule, RuleText(rule));
  std::cout << Json::Object()
                   .Set("rules", std::move(rules))
                   .Set("symbols", kSymbols)
                   .Set("messages", MessagesJson({"SolverParameter"}))
                   .ToString();
}

void PrintField(const std::string& name) {
  const MessageDoc doc = DescribeMessage("SolverParameter");
  const auto field = std::ranges::find(doc.fields, name, &FieldDoc::name);
  if (field == doc.fields.end()) {
    std::vector<std::string> names;
    for (const FieldDoc& known : doc.fields) names.push_back(known.name);
    throw Error(ErrorCode::kUsage, Join("no solver field '", name, "'.", DidYouMean(name, names),
                                        " 'trainer solver' lists the fields"));
  }
  std::cout << field->name << ": " << field->type;
  if (!field->default_value.empty()) std::cout << ", default " << field->default_value;
  std::cout << "\n\n" << Wrap(field->comment, 0) << "\n";
}

class SolverFields final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {
        .task = VerbTask::kSettings,
        .summary = "list the update rules and the fields of a solver",
        .usage = "trainer solver [FIELD|RULE] [--json]",
        .text =
            "With a field: prints its type, its default and what it does. With an update rule: "
            "prints its formula. --json prints all of this, for editors and other programs.",
        .examples =
            "trainer solver\n"
            "trainer solver warmup_iter\n"
            "trainer solver Adam\n"
            "trainer solver --json",
        .flags = {JsonFlag()},
        .max_words = 1,
    };
  }

  int Run(const Flags& flags) override {
    if (flags.Switch("json")) {
      PrintSolverJson();
      return 0;
    }
    if (!flags.words().empty()) {
      const std::string& name = flags.words()[0];
      const std::vector<std::string> rules = StepRuleNames();
      std::ranges::find(rules, name) != rules.end() ? PrintRule(name) : PrintField(name);
      return 0;
    }
    std::cout << Wrap("update rules (field type): " + JoinList(StepRuleNames()), 0) << "\n\n"
              << Explain("SolverParameter");
    return 0;
  }
};

const RegisterVerb<SolverFields> kSolver("solver");

}  // namespace
}  // namespace trainer

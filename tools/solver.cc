#include <algorithm>
#include <iostream>

#include "schema_json.h"
#include "shared_flags.h"
#include "table.h"
#include "trainer/base/json.h"
#include "trainer/base/text.h"
#include "trainer/config/schema_doc.h"
#include "trainer/steps/step_rule.h"
#include "verb.h"

namespace trainer {
namespace {

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
        .summary = "list the update rules and a solver's fields",
        .usage = "trainer solver [FIELD] [--json]",
        .text = "With a field: its type, its default and what it does. --json prints all fields.",
        .examples =
            "trainer solver\n"
            "trainer solver warmup_iter\n"
            "trainer solver --json",
        .flags = {JsonFlag()},
        .max_words = 1,
    };
  }

  int Run(const Flags& flags) override {
    if (flags.Switch("json")) {
      Json rules = Json::Array();
      for (const std::string& rule : StepRuleNames()) rules.Push(rule);
      std::cout << Json::Object()
                       .Set("rules", std::move(rules))
                       .Set("messages", MessagesJson({"SolverParameter"}))
                       .ToString();
      return 0;
    }
    if (!flags.words().empty()) {
      PrintField(flags.words()[0]);
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

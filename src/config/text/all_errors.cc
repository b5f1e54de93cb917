#include "text/all_errors.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <utility>

#include "net_build.h"
#include "solver.pb.h"
#include "trainer/base/error/error_collector.h"
#include "trainer/base/text/text.h"
#include "trainer/config/layer_types.h"

namespace trainer {
namespace {

// More messages do not help the user, and each costs a parse of the file.
constexpr size_t kMostProblems = 50;
constexpr size_t kMostBytes = size_t{64} << 20;  // limit of all bytes that are parsed again
constexpr int kMaxDepth = 64;

// Keeps the parser's first complaint. Later complaints are mostly consequences of the first.
class FirstComplaint final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& text) override {
    if (!complaint) complaint = ParserComplaint{line, column, text};
  }

  std::optional<ParserComplaint> complaint;
};

// Returns the error without the quoted line of the file.
Error Short(const Error& error) {
  const std::string text = error.what();
  return Error(error.code(), text.substr(0, text.find("\n  ")));
}

// Returns the errors of the layers of a net whose types do not exist.
ErrorList UnknownTypes(const ParsedText& parsed, const google::protobuf::Message& message) {
  ErrorList errors;
  const auto* net = dynamic_cast<const caffe::NetParameter*>(&message);
  if (net == nullptr) return errors;
  ErrorCollector ignored;  // the next run reports other errors of the net
  ignored.Try([&] {
    const NetSpec spec = BuildNet(*net, parsed.file, &parsed.tree);
    errors = TypeErrors(spec.layers);
  });
  return errors;
}

// Throws kConfig if the file holds a net instead of a solver, or the other way round, so that this
// is reported as one error and not as one for each line.
void RefuseOtherKind(const ParsedText& parsed, const google::protobuf::Message& message) {
  const std::string& kind = message.GetDescriptor()->name();
  ParsedText text;
  text.content = parsed.content;
  if (kind == "SolverParameter") {
    caffe::NetParameter net;
    if (Parse(&text, &net) || net.layer_size() + net.layers_size() == 0) return;
    throw Error(ErrorCode::kConfig, {parsed.file},
                "this is a net, but a solver is expected: a solver names its net by net: \"FILE\" "
                "and has base_lr, lr_policy and max_iter (give a net with --model)");
  }
  if (kind == "NetParameter") {
    caffe::SolverParameter solver;
    if (Parse(&text, &solver)) return;
    const std::string net = solver.has_net() ? solver.net() : solver.train_net();
    throw Error(ErrorCode::kConfig, {parsed.file},
                Join("this is a solver, but a net is expected",
                     net.empty() ? "" : Join("; its net is '", EscapeControl(net), "'"),
                     " (give a solver with --solver)"));
  }
}

}  // namespace

std::optional<ParserComplaint> Parse(ParsedText* parsed, google::protobuf::Message* message) {
  FirstComplaint errors;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&errors);
  parser.WriteLocationsTo(&parsed->tree);
  parser.SetRecursionLimit(kMaxDepth);
  const bool ok = parser.ParseFromString(parsed->content, message);
  if (!ok && !errors.complaint)
    return ParserComplaint{-1, 0, "the file is not protobuf text format"};
  return errors.complaint;
}

void ThrowProblems(std::unique_ptr<ParsedText> parsed, ParserComplaint first,
                   google::protobuf::Message* message) {
  RefuseOtherKind(*parsed, *message);
  ErrorList fields;
  std::optional<ParserComplaint> complaint = std::move(first);
  size_t bytes = 0;
  while (complaint) {
    Explanation found = ExplainComplaint(*complaint, *message->GetDescriptor(), *parsed);
    const bool follows = !fields.empty() && complaint->line < 0;  // of a field that was left out
    if (!follows) fields.push_back(std::move(found.error));
    bytes += parsed->content.size();
    if (!found.field || fields.size() >= kMostProblems || bytes > kMostBytes) break;
    auto rest = std::make_unique<ParsedText>();
    rest->file = parsed->file;
    rest->content = parsed->content;
    if (!BlankField(&rest->content, *found.field)) break;
    parsed = std::move(rest);
    complaint = Parse(parsed.get(), message);
  }
  ErrorList all;
  if (!complaint) all = UnknownTypes(*parsed, *message);
  if (all.empty() && fields.size() == 1) throw Error(fields[0]);
  for (const Error& error : fields) all.push_back(Short(error));
  if (all.size() == 1) throw Error(all[0]);
  throw ErrorGroup(std::move(all));
}

}  // namespace trainer

# cmake -DFOLDER=<folder> -DOUTPUT=<source.cc> -P EmbedHelp.cmake
# Writes a source whose function trainer::HelpFile(name) returns the text of <folder>/<name>.txt, or
# an empty text if there is no such file.
file(GLOB pages ${FOLDER}/*.txt)
set(cases "")
foreach(page ${pages})
  get_filename_component(name ${page} NAME_WE)
  file(READ ${page} text)
  string(APPEND cases "  if (name == \"${name}\") return R\"~(${text})~\";\n")
endforeach()
file(WRITE ${OUTPUT} "#include <string_view>
namespace trainer {
std::string_view HelpFile(std::string_view name);
std::string_view HelpFile(std::string_view name) {
${cases}  return {};
}
}  // namespace trainer
")

#include "html.h"

#include "history/run_files.h"
#include "trainer/base/text/base64.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"

namespace trainer {

namespace {

std::string TableRow(const std::vector<std::string>& cells, const char* tag) {
  std::string row = "<tr>";
  for (const std::string& cell : cells)
    row += Join("<", tag, ">", EscapeHtml(cell), "</", tag, ">");
  return row + "</tr>\n";
}

}  // namespace

std::string Plain(double value) { return Join(static_cast<float>(value)); }

std::string TableHtml(const std::vector<std::string>& head,
                      const std::vector<std::vector<std::string>>& rows, bool stacked) {
  std::string html = Join("<div class=\"wide\"><table", stacked ? " class=\"stacked\"" : "", ">\n");
  html += TableRow(head, "th");
  for (const auto& row : rows) {
    if (!stacked) {
      html += TableRow(row, "td");
      continue;
    }
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) {
      html += Join("<td data-label=\"", EscapeHtml(head[i]), "\">", EscapeHtml(row[i]), "</td>");
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

std::string FigureHtml(const std::string& png, const std::vector<std::string>& caption) {
  std::string plain, lines;
  for (const std::string& line : caption) {
    plain += (plain.empty() ? "" : ", ") + EscapeHtml(line);
    lines += (lines.empty() ? "" : "<br>") + EscapeHtml(line);
  }
  return Join("<figure><img alt=\"", plain, "\" src=\"data:image/png;base64,", EscapeHtml(png),
              "\"><figcaption>", lines, "</figcaption></figure>\n");
}

std::string PictureOfRun(const RunMetrics& run, const char* file, const std::string& caption) {
  const std::optional<std::string> png = FileOfRun(run, file);
  constexpr std::string_view kPngStart = "\x89PNG\r\n\x1a\n";
  return png && png->starts_with(kPngStart) ? FigureHtml(Base64(*png), {caption}) : "";
}

}  // namespace trainer

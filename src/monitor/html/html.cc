#include "html.h"

#include "history/run_files.h"
#include "trainer/base/text/base64.h"
#include "trainer/base/text/text.h"
#include "trainer/monitor/chart.h"

namespace trainer {

namespace {

constexpr char kPageStyle[] =
    "body{margin:0 auto;max-width:1360px;padding:1rem;font:15px/1.45 system-ui,sans-serif;"
    "color:var(--ink);background:#fff}"
    "@media(prefers-color-scheme:dark){body{background:#181a1b}}"
    "h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}h3{font-size:1rem}"
    ".wide{overflow-x:auto}table{border-collapse:collapse}"
    "th,td{text-align:left;padding:.25rem .7rem;border-bottom:1px solid var(--faint);"
    "vertical-align:top;white-space:nowrap}details td{white-space:normal}"
    ".charts{margin-top:1.5rem;display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax("
    "min(100%,30rem),"
    "1fr))}"
    ".charts svg{width:100%;height:auto}"
    ".pictures{display:flex;flex-wrap:wrap;gap:1rem}figure{margin:0}"
    "img{max-width:100%;min-width:min(14rem,100%);image-rendering:pixelated}figcaption{font-size:."
    "85rem}"
    ".matrix td,.matrix th{text-align:right;padding:.25rem .5rem}"
    ".matrix .hit{background:color-mix(in srgb,var(--c2) calc(.7*var(--share)),transparent)}"
    ".matrix .miss{background:color-mix(in srgb,var(--c1) calc(.7*var(--share)),transparent)}"
    ".cards{display:grid;gap:.7rem;grid-template-columns:repeat(auto-fill,minmax(min(100%,11rem),"
    "1fr))}.card{border:1px solid var(--faint);border-radius:.5rem;padding:.6rem .8rem;"
    "font-size:.85rem}.card b{display:block;font-size:1.1rem;overflow-wrap:anywhere}"
    "details{margin-top:1rem}summary{cursor:pointer;font-weight:600}"
    "@media(max-width:600px){.charts text{font-size:15px}.charts .title{font-size:17px}"
    ".stacked th{display:none}.stacked tr{display:block;margin-bottom:1rem}"
    ".stacked td{display:flex;justify-content:space-between;gap:1rem;white-space:normal;"
    "padding:.15rem 0;overflow-wrap:anywhere}.stacked td:empty{display:none}"
    ".stacked td::before{content:attr(data-label);opacity:.7}"
    "details td{overflow-wrap:anywhere}}"
    ".worst figure{width:9rem}.worst "
    "img{width:100%;min-width:0}"
    ".bars{min-width:10rem}.bar{height:.8rem;margin-top:.3rem;background:var(--c0)}\n";

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

std::string PageHtml(const std::string& title, const std::string& body) {
  return Join(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
      EscapeHtml(title), "</title>\n<style>\n", ChartStyle(), kPageStyle,
      "</style>\n</head>\n<body>\n<h1>", EscapeHtml(title), "</h1>\n", body, "</body>\n</html>\n");
}

}  // namespace trainer

// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/live_pages.h"

#include "tools/common/report.h"
#include "tools/html/html_page.h"
#include "tools/html/plot_frame.h"

#include <algorithm>

namespace cudaq::realtime::tools {
namespace {

using cudaq::qec::realtime::kRequestStages;
using cudaq::qec::realtime::request_stage;
using detail::time_histogram;

constexpr std::size_t kMaxDecoders = 16;

/// "3 decoders have", "1 decoder has".
std::string decoders_have(std::size_t count) {
  return count == 1 ? "1 decoder has" : fmt::format("{} decoders have", count);
}

std::string times_section(const timed_decoder &of) {
  std::vector<plotted_times> rows;
  std::vector<std::vector<std::string>> cells{{"stage", "requests", "mean", "p50", "p99", "p99.9", "max"}};
  for (std::size_t s = 0; s < kRequestStages.size(); ++s) {
    rows.push_back({std::string(kRequestStages[s]), of.times->read(static_cast<request_stage>(s))});
    const time_histogram::snapshot &times = rows.back().times;
    const auto cell = [&times](double ns) { return times.count == 0 ? "-" : format_ns(ns); };
    cells.push_back({rows.back().name, std::to_string(times.count),
                     cell(static_cast<double>(times.sum_ns) / static_cast<double>(times.count))});
    for (const double percent : {50.0, 99.0, 99.9, 100.0})
      cells.back().push_back(cell(static_cast<double>(times.percentile(percent))));
  }
  return fmt::format("<section>\n<h2>Decoder {}{}</h2>\n", of.id, of.name.empty() ? "" : ": " + html_text(of.name)) +
         times_plot(rows) + html_table(cells) + "</section>\n";
}

/// Draws with the classes of the plots. What it reads are numbers, and it writes text, never HTML.
constexpr const char *kStreamsScript = R"js(
const keptSeconds = 120, pollMs = 1000, readings = [];
const counters = ['lag_rounds', 'worst_lag_rounds', 'rounds_pushed_total', 'rounds_committed_total', 'waiting'];
const line = new RegExp('^cudaq_decoder_(' + counters.join('|') + ')[{]decoder="([0-9]+)"[}] ([0-9]+)$', 'gm');
const byId = id => document.getElementById(id);

function add(parent, name, attributes, text = '') {
  const isDrawn = parent.namespaceURI.endsWith('/svg');
  const made = isDrawn ? document.createElementNS(parent.namespaceURI, name) : document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.textContent = text;
  parent.appendChild(made);
  return made;
}

async function read() {
  const reading = {at: performance.now() / 1000, of: {}};
  try {
    const answer = await fetch('/metrics', {cache: 'no-store', signal: AbortSignal.timeout(2 * pollMs)});
    const text = await answer.text();
    if (!text.endsWith('# EOF\n')) throw new Error('it was cut');
    for (const [, name, id, value] of text.matchAll(line))
      (reading.of[id] ??= {})[name] = Number(value);
    byId('state').textContent = 'Read at ' + new Date().toLocaleTimeString() + '.';
  } catch {
    byId('state').textContent = 'The server does not answer.';
  }
  readings.push(reading);
  while (readings[0].at < reading.at - keptSeconds) readings.shift();
}

// At least a fifth of `most`.
function roundStep(most) {
  const power = 10 ** Math.floor(Math.log10(most / 5));
  return Math.max(1, power * [1, 2, 5, 10].find(digit => digit * power >= most / 5));
}

function drawAxes(svg, x, y, top, step) {
  for (let value = 0; value <= top; value += step) {
    add(svg, 'line', {class: 'grid', x1: frame.left, x2: frame.right, y1: y(value), y2: y(value)});
    add(svg, 'text', {x: frame.left - 6, y: y(value) + 4, 'text-anchor': 'end'}, value);
  }
  for (let ago = 0; ago <= keptSeconds; ago += 20) {
    add(svg, 'line', {class: 'grid', x1: x(ago), x2: x(ago), y1: frame.top, y2: frame.bottom});
    add(svg, 'text', {x: x(ago), y: frame.bottom + 17, 'text-anchor': 'middle'}, ago ? '-' + ago + ' s' : 'now');
  }
  const up = 'translate(14 ' + (frame.top + frame.bottom) / 2 + ') rotate(-90)';
  add(svg, 'text', {class: 'title', transform: up, 'text-anchor': 'middle'}, 'lag, rounds');
}

function draw() {
  const now = readings.at(-1), svg = byId('lag');
  const lag = (reading, id) => reading.of[id]?.lag_rounds;
  const most = Math.max(1, ...readings.flatMap(reading => decoders.map(id => lag(reading, id) ?? 0)));
  const step = roundStep(most), top = step * Math.ceil(most / step);
  const x = ago => frame.right - (frame.right - frame.left) * ago / keptSeconds;
  const y = value => frame.bottom - (frame.bottom - frame.top) * value / top;
  svg.replaceChildren();
  drawAxes(svg, x, y, top, step);
  decoders.forEach((id, k) => {
    let points = '', last = null;
    const endLine = () => add(svg, 'polyline', {class: 's' + k % colours, points});
    for (const reading of readings) {
      // A reading that failed, or that the browser did not make, interrupts the line.
      if (points && (lag(reading, id) === undefined || reading.at - last.at > 4 * pollMs / 1000)) {
        endLine();
        points = '';
      }
      if (lag(reading, id) === undefined) continue;
      points += x(now.at - reading.at) + ',' + y(lag(reading, id)) + ' ';
      last = reading;
    }
    if (points) endLine();
    if (last === now) add(svg, 'circle', {class: 'f' + k % colours, cx: x(0), cy: y(lag(now, id)), r: 3});
  });
}

function tell() {
  const now = readings.at(-1), before = readings.at(-2), table = byId('now');
  const row = (cell, texts) => {
    const made = add(table, 'tr', {});
    texts.forEach(text => add(made, cell, {}, text));
    return made.firstChild;
  };
  table.replaceChildren();
  row('th', ['decoder', 'lag', 'worst lag since the start', 'rounds/s', 'final/s', 'requests waiting']);
  decoders.forEach((id, k) => {
    const is = now.of[id] ?? {}, was = before?.of[id] ?? {};
    const rate = name => {
      const grown = (is[name] - was[name]) / (now.at - before?.at);
      return grown >= 0 ? Math.round(grown) : '-';
    };
    const first = row('td', [id, is.lag_rounds ?? '-', is.worst_lag_rounds ?? '-', rate('rounds_pushed_total'),
                             rate('rounds_committed_total'), is.waiting ?? '-']);
    const sample = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
    sample.setAttribute('class', 'sample');
    add(sample, 'line', {class: 's' + k % colours, x1: 0, x2: 20, y1: 6, y2: 6});
    first.prepend(sample);
  });
}

(async () => {
  for (;;) {
    await read();
    draw();
    tell();
    await new Promise(next => setTimeout(next, pollMs));
  }
})();
)js";

} // namespace

std::string live_page(const std::string &title, const std::string &heading, int refresh_s, const std::string &content) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{}"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n"
      "<p><a href=\"/detectors\">Detectors</a> | <a href=\"/times\">Times</a> | <a href=\"/streams\">Streams</a> | "
      "<a href=\"/metrics\">Counters</a></p>\n{}</main>\n</body>\n</html>\n",
      refresh_s == 0 ? "" : fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", refresh_s), html_text(title),
      page_style(), html_text(heading), content);
}

std::vector<timed_decoder> timed_decoders(const cudaq::qec::realtime::decoding_server &server) {
  std::vector<timed_decoder> all;
  for (const auto &decoder : server.decoders())
    all.push_back({decoder->limits().id, decoder->identity()->name, &decoder->times()});
  return all;
}

std::string times_page(const std::vector<timed_decoder> &decoders) {
  std::string sections;
  std::size_t answering = 0;
  for (const timed_decoder &decoder : decoders)
    if (decoder.times->read(request_stage::whole).count != 0 && ++answering <= kMaxDecoders)
      sections += times_section(decoder);
  if (answering > kMaxDecoders)
    sections += html_paragraph(decoders_have(answering - kMaxDecoders) + " no room here: see the counters.");
  if (answering < decoders.size())
    sections += html_paragraph(decoders_have(decoders.size() - answering) + " answered no request so far.");
  return live_page("Times", "Times of the stages since the start", 5, sections);
}

std::vector<std::uint64_t> stream_decoders(const cudaq::qec::realtime::decoding_server &server) {
  std::vector<std::uint64_t> ids;
  for (const auto &decoder : server.decoders())
    if (decoder->is_stream())
      ids.push_back(decoder->limits().id);
  return ids;
}

std::string streams_page(const std::vector<std::uint64_t> &decoders) {
  constexpr const char *kTitle = "Streams", *kHeading = "Streams: rounds that came and are not final";
  if (decoders.empty())
    return live_page(kTitle, kHeading, 0, html_paragraph("No decoder of this server takes streams."));
  const std::size_t shown = std::min(decoders.size(), kMaxDecoders);
  std::string ids;
  for (std::size_t k = 0; k < shown; ++k)
    ids += fmt::format("'{}',", decoders[k]);
  return live_page(
      kTitle, kHeading, 0,
      fmt::format("<style>.sample{{display:inline-block;width:20px;min-width:0;height:12px;"
                  "margin-right:.5rem}}</style>\n"
                  "<p id=\"state\">A script of this page reads the counters every second, and draws them.</p>\n"
                  "<div class=\"plot\"><svg id=\"lag\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"lag of the "
                  "streams over the last 2 minutes\"></svg></div>\n"
                  "<div class=\"table\"><table id=\"now\"></table></div>\n{}"
                  "<script>\nconst frame = {{left: {}, right: {}, top: {}, bottom: {}}}, colours = {};\n"
                  "const decoders = [{}];{}</script>\n",
                  kWidth, kHeight,
                  shown == decoders.size()
                      ? ""
                      : html_paragraph(decoders_have(decoders.size() - shown) + " no room here: see the counters."),
                  kLeft, kRight, kTop, kBottom, kColours, ids, kStreamsScript));
}

} // namespace cudaq::realtime::tools

#include "bench/common/svg_plot.h"

#include "bench/common/temporary_folder.h"
#include "launch/captured.h"
#include "lockstep/error.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace lockstep::bench {
namespace {

using Words = std::vector<std::string>;

// An XML parser that is not ours: prints "TAG CLASS|TITLE|ATTRIBUTES" of every shape that is named.
constexpr const char* kParser = R"(
import sys, xml.etree.ElementTree as tree
space = '{http://www.w3.org/2000/svg}'
root = tree.parse(sys.argv[1]).getroot()
assert root.tag == space + 'svg', root.tag
for text in root.iter(space + 'text'):
    print('text|' + text.text)
for shape in root:
    title = shape.find(space + 'title')
    if title is not None:
        places = ' '.join(shape.get(name, '') for name in ('cx', 'cy', 'x', 'width'))
        print(shape.get('class') + '|' + title.text + '|' + places.strip())
)";

// The lines of the parser; fails the test when the text is no XML.
Words parsed(const std::string& svg) {
  const TemporaryFolder folder;
  std::ofstream(folder.file("plot.svg")) << svg;
  const launch::Captured python =
      launch::run_captured({.command = {"python3", "-c", kParser, folder.file("plot.svg")},
                            .environment = {},
                            .patience = std::chrono::seconds(60)});
  EXPECT_EQ(python.exit_code, 0) << python.error << svg;
  Words lines;
  std::istringstream output(python.output);
  for (std::string line; std::getline(output, line);) {
    lines.push_back(line);
  }
  return lines;
}

bool holds(const Words& lines, const std::string& line) {
  return std::ranges::find(lines, line) != lines.end();
}

TEST(SvgPlot, a_file_holds_every_point_where_its_axes_put_it) {
  const Words lines = parsed(
      svg_of(LinePlot{.title = "all_reduce <2 ranks> & \"more\"",
                      .x = {"bytes", Scale::logarithmic},
                      .y = {"ms", Scale::logarithmic},
                      .lines = {{"ours", {{1e3, 0.01}, {1e5, 1}}}, {"a & b", {{1e5, 10}}}}}));
  // x: 1e3 … 1e5 on 76 … 610; y: 0.01 … 10 on 400 … 48.
  EXPECT_TRUE(holds(lines, "point|ours: 1k, 0.01|76.00 400.00"));
  EXPECT_TRUE(holds(lines, "point|ours: 100k, 1|610.00 165.33"));
  EXPECT_TRUE(holds(lines, "point|a & b: 100k, 10|610.00 48.00"));
  for (const char* text : {"all_reduce <2 ranks> & \"more\"", "bytes", "ms", "ours", "a & b", "1k",
                           "10k", "100k", "0.01", "0.1", "1", "10"}) {
    EXPECT_TRUE(holds(lines, std::string("text|") + text)) << text;
  }
}

TEST(SvgPlot, bars_begin_at_zero_and_end_at_their_medians) {
  const Words lines =
      parsed(svg_of(BarPlot{.title = "steps",
                            .value_title = "ms",
                            .bars = {{"apart", {1000, 1000, 1000}}, {"ddp", {500, 400, 2000}}},
                            .mark = Mark{"apart's", 1000}}));
  // 0 … 2000 on 210 … 650.
  EXPECT_TRUE(holds(lines, "bar|apart: 1k|210.00 220.00"));
  EXPECT_TRUE(holds(lines, "bar|ddp: 500 (400 to 2k)|210.00 110.00"));
  EXPECT_TRUE(holds(lines, "text|apart's"));
  EXPECT_TRUE(holds(lines, "text|ddp"));
}

TEST(SvgPlot, values_without_a_place_are_refused) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THROW(svg_of(LinePlot{"t", {"x"}, {"y"}, {}}), InvariantBroken);
  EXPECT_THROW(svg_of(LinePlot{"t", {"x"}, {"y"}, {{"a", {{1, infinite}}}}}), InvariantBroken);
  EXPECT_THROW(svg_of(LinePlot{"t", {"x", Scale::logarithmic}, {"y"}, {{"a", {{0, 1}}}}}),
               InvariantBroken);
  EXPECT_THROW(svg_of(BarPlot{"t", "v", {}}), InvariantBroken);
  EXPECT_THROW(svg_of(BarPlot{"t", "v", {{"a", {1, -1, 1}}}}), InvariantBroken);
}

TEST(SvgPlot, ticks_are_round_and_span_the_values) {
  using Values = std::vector<double>;
  EXPECT_EQ(ticks_of(0, 1450, Scale::linear), (Values{0, 500, 1000, 1500}));
  EXPECT_EQ(ticks_of(3, 3, Scale::linear).front(), 3);
  EXPECT_EQ(ticks_of(1, 1e6, Scale::logarithmic), (Values{1, 10, 100, 1e3, 1e4, 1e5, 1e6}));
  EXPECT_EQ(ticks_of(0.03, 0.4, Scale::logarithmic).size(), 5u);  // .02 .05 .1 .2 .5
  EXPECT_EQ(ticks_of(1, 1, Scale::logarithmic).size(), 2u);
  for (const Scale scale : {Scale::linear, Scale::logarithmic}) {
    for (double least = 1e-6; least < 1e9; least *= 7.3) {
      for (double factor = 1; factor < 1e12; factor *= 3.1) {
        const Values ticks = ticks_of(least, least * factor, scale);
        EXPECT_TRUE(std::ranges::is_sorted(ticks));
        EXPECT_GE(ticks.size(), 2u);
        EXPECT_LE(ticks.size(), 10u) << least << " to " << least * factor;
        EXPECT_LE(ticks.front(), least * (1 + 1e-12));
        EXPECT_GE(ticks.back(), least * factor * (1 - 1e-12));
      }
    }
  }
}

TEST(SvgPlot, numbers_are_short) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.25), "0.25");
  EXPECT_EQ(short_number(999.4), "999");
  EXPECT_EQ(short_number(999.6), "1k");
  EXPECT_EQ(short_number(1234), "1.23k");
  EXPECT_EQ(short_number(25e6), "25M");
  EXPECT_EQ(short_number(-4000), "-4k");
}

}  // namespace
}  // namespace lockstep::bench

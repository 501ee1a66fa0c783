// Fits a line through points by data parallelism written by hand, with the mistake that its first
// word names (docs/hangs.md shows what each prints):
//   hang [branch | skip | sleep | stop | die]
#include "lockstep/group.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

namespace {

constexpr int kSteps = 5;
constexpr int kPoints = 8;  // of each rank

struct Line {
  float slope = 0;
  float offset = 0;
};

struct Point {
  float x;
  float y;
};

using Points = std::array<Point, kPoints>;

// Of y = 2x + 1; no two ranks have the same.
Points points_of(const lockstep::Group& world) {
  Points points;
  for (int i = 0; i < kPoints; ++i) {
    const float x = static_cast<float>(i * world.size() + world.rank()) / 10;
    points[static_cast<std::size_t>(i)] = {x, 2 * x + 1};
  }
  return points;
}

float mean_over_ranks(lockstep::Group& world, float value, const char* name) {
  world.all_reduce(std::span(&value, 1), {.op = lockstep::ReduceOp::mean, .name = name}).wait();
  return value;
}

// The mean error. Centres x over all ranks, a collective in forward as synchronised batch norm has.
float forward(lockstep::Group& world, const Line& line, const Points& points, Line& gradient) {
  float sum = 0;
  for (const Point& point : points) {
    sum += point.x;
  }
  const float centre = mean_over_ranks(world, sum / kPoints, "mean of x");
  float error = 0;
  gradient = {};
  for (const auto& [x, y] : points) {
    const float miss = line.slope * (x - centre) + line.offset - y;
    error += miss * miss / kPoints;
    gradient.slope += 2 * miss * (x - centre) / kPoints;
    gradient.offset += 2 * miss / kPoints;
  }
  return error;
}

void go_wrong(const std::string& mistake) {
  if (mistake == "sleep") {
    std::this_thread::sleep_for(std::chrono::minutes(1));
  } else if (mistake == "stop") {
    std::raise(SIGSTOP);
  } else if (mistake == "die") {
    std::raise(SIGKILL);
  }
}

void train(lockstep::Group& world, const std::string& mistake) {
  const Points points = points_of(world);
  Line line;
  for (int step = 1; step <= kSteps; ++step) {
    world.mark_step(step);
    Line gradient;
    const float error = forward(world, line, points, gradient);
    if (world.rank() == 0 && step == 3 && mistake == "branch") {
      Line unused;
      std::printf("step 3: error %.4f\n", forward(world, line, points, unused));
    }
    if (world.rank() == 1 && step == 3) {
      go_wrong(mistake);
    }
    line.slope -= 0.1f * mean_over_ranks(world, gradient.slope, "gradient of slope");
    if (world.rank() == 1 && step == 3 && mistake == "skip") {
      continue;
    }
    line.offset -= 0.1f * mean_over_ranks(world, gradient.offset, "gradient of offset");
    if (world.rank() == 0 && step == kSteps) {
      std::printf("trained: error %.4f\n", error);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    lockstep::Group world = lockstep::Group::from_environment();
    train(world, argc > 1 ? argv[1] : "");
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

#include "bench/train/modes.h"

#include "lockstep/error.h"

#include <algorithm>
#include <array>
#include <functional>

namespace lockstep::bench {
namespace {

constexpr const char* kMalloc = "-malloc";

struct Known {
  const char* name;
  Kind kind;
  const char* counterpart;  // of ours
};

constexpr std::array kKnown{
    Known{"apart", Kind::apart, ""},
    Known{"threads", Kind::threads, ""},
    Known{"ddp", Kind::stage, ""},
    Known{"zero1", Kind::stage, ""},
    Known{"zero2", Kind::stage, ""},
    Known{"zero3", Kind::stage, ""},
    Known{"pytorch-none", Kind::pytorch, "apart"},
    Known{"pytorch-ddp", Kind::pytorch, "ddp"},
    Known{"pytorch-zero1", Kind::pytorch, "zero1"},
    Known{"pytorch-fsdp2", Kind::pytorch, "zero3"},
    Known{"deepspeed-zero1", Kind::deepspeed, "zero1"},
    Known{"deepspeed-zero2", Kind::deepspeed, "zero2"},
    Known{"deepspeed-zero3", Kind::deepspeed, "zero3"},
};

std::string known_names() {
  std::string names;
  for (const Known& known : kKnown) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

std::string without_malloc(const std::string& name) {
  const bool tuned = name.ends_with(kMalloc);
  return tuned ? name.substr(0, name.size() - std::string(kMalloc).size()) : name;
}

const Known* find_known(const std::string& name) {
  const auto found = std::ranges::find(kKnown, without_malloc(name),
                                       [](const Known& known) { return std::string(known.name); });
  const bool exists = found != kKnown.end();
  const bool tuned = name.ends_with(kMalloc);
  return exists && (!tuned || *found->counterpart != '\0') ? found : nullptr;
}

struct Value {
  std::string name;
  Dials dials;
};

struct Dial {
  std::string name;
  std::vector<std::string> stages;  // that it turns something in, the default first
  std::vector<Value> values;
};

Value bucket(double mb, const std::string& name) { return {name, {.bucket_mb = mb}}; }
Value unit(std::int64_t blocks, const std::string& name) { return {name, {.unit_blocks = blocks}}; }

// From one bad end to the other.
std::vector<Dial> dials() {
  constexpr std::int64_t kAllBlocks = 1'000'000;
  return {{"bucket",
           {"ddp", "zero1", "zero2"},
           {bucket(0, "bucket 0 (one per parameter)"), bucket(1, "bucket 1 MB"),
            bucket(5, "bucket 5 MB"), bucket(25, "bucket 25 MB"), bucket(100, "bucket 100 MB"),
            bucket(1e6, "bucket of all")}},
          {"unit",
           {"zero3"},
           {unit(1, "unit of 1 block"), unit(2, "unit of 2 blocks"), unit(4, "unit of 4 blocks"),
            unit(kAllBlocks, "unit of all blocks")}},
          {"overlap",
           {"ddp", "zero1", "zero2", "zero3"},
           {{"overlap on", {.overlap = true}}, {"overlap off", {.overlap = false}}}}};
}

Dial dial_named(const std::string& name) {
  for (const Dial& dial : dials()) {
    if (dial.name == name) {
      return dial;
    }
  }
  if (name == "prefetch") {
    throw UsageError("--sweep prefetch: not built yet; use bucket, unit or overlap");
  }
  throw UsageError("--sweep " + name + ": expected bucket, unit or overlap");
}

}  // namespace

bool is_data_parallel(const Mode& mode) {
  return mode.kind == Kind::stage || mode.kind == Kind::deepspeed ||
         (mode.kind == Kind::pytorch && counterpart_of(mode) != "apart");
}

bool is_peer(const Mode& mode) {
  return mode.kind == Kind::pytorch || mode.kind == Kind::deepspeed;
}

std::string package_of(const Mode& mode) {
  switch (mode.kind) {
    case Kind::pytorch:
      return "torch";
    case Kind::deepspeed:
      return "deepspeed";
    default:
      return "";
  }
}

Mode mode_named(const std::string& name) {
  const Known* known = find_known(name);
  if (known == nullptr) {
    throw UsageError("--stages " + name + ": use some of " + known_names());
  }
  return {.name = name, .stage = name, .kind = known->kind};
}

std::vector<Mode> modes_named(const std::vector<std::string>& names) {
  std::vector<Mode> modes;
  for (const std::string& name : names) {
    modes.push_back(mode_named(name));
    const auto same = std::ranges::count(modes, name, &Mode::name);
    if (same > 1) {
      throw UsageError("--stages: names " + name + " twice; every round launches each mode once");
    }
  }
  return modes;
}

std::vector<Mode> peers() {
  std::vector<std::string> names;
  for (const Known& known : kKnown) {
    if (*known.counterpart != '\0') {
      names.emplace_back(known.name);
      if (names.back() == kPyTorch) {
        names.emplace_back(kPyTorchTuned);
      }
    }
  }
  return modes_named(names);
}

std::string counterpart_of(const Mode& mode) {
  const Known* known = is_peer(mode) ? find_known(mode.stage) : nullptr;
  return known == nullptr ? "" : known->counterpart;
}

std::vector<Mode> swept(const std::string& name, const std::vector<Mode>& modes) {
  const Dial dial = dial_named(name);
  std::vector<Mode> result;
  bool turned = false;
  for (const Mode& mode : modes) {
    if (mode.kind != Kind::stage) {
      result.push_back(mode);
      continue;
    }
    if (std::ranges::find(dial.stages, mode.stage) == dial.stages.end()) {
      throw UsageError("--sweep " + name + ": turns nothing in " + mode.stage + "; use --stages " +
                       "apart," + dial.stages.front());
    }
    turned = true;
    for (const Value& value : dial.values) {
      result.push_back({mode.name + " " + value.name, mode.stage, mode.kind, value.dials});
    }
  }
  if (!turned) {
    throw UsageError("--sweep " + name + ": no stage to sweep; use --stages apart," +
                     dial.stages.front());
  }
  return result;
}

std::vector<std::string> stages_for(const std::string& dial) {
  return {"apart", dial_named(dial).stages.front()};
}

}  // namespace lockstep::bench

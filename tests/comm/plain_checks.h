// Collectives on plain memory against the oracle, by the algorithm that the options name, or for
// whatever their size selects. Each runs on every rank; buffers stand between guards, at a
// misalignment of one element.
#pragma once

#include "base/guarded.h"
#include "comm/oracle.h"
#include "lockstep/group.h"

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace lockstep::test {

template <class T>
Span span_of(Guarded<T>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), DtypeOf<T>::value};
}

template <class T>
Guarded<T> filled(std::int64_t count, int rank, std::uint64_t salt) {
  Guarded<T> values(static_cast<std::size_t>(count), 1);
  for (std::int64_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = value_of<T>(rank, i, salt);
  }
  return values;
}

// Throws unless `values` are `expected(i)` for i from `first`, and its guards stand.
template <class T, class Expected>
void require_values(const std::string& what, const Guarded<T>& values, std::int64_t first,
                    Expected expected) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!same_bits(values[i], expected(first + static_cast<std::int64_t>(i)))) {
      throw std::runtime_error(what + ": wrong at element " + std::to_string(i) + " of " +
                               std::to_string(values.size()));
    }
  }
  if (!values.guards_intact()) {
    throw std::runtime_error(what + ": wrote outside of " + std::to_string(values.size()));
  }
}

template <class T>
std::string case_name(const char* what, const Group& group, std::int64_t count) {
  return std::string(what) + " " + std::string(name_of(DtypeOf<T>::value)) + "[" +
         std::to_string(count) + "] on " + std::to_string(group.size()) + " ranks";
}

// The rank whose block element i is.
inline int owner_of(std::int64_t i, std::int64_t count, int ranks, std::int64_t granule = 1) {
  return static_cast<int>(i / block_of(count, ranks, 0, granule).size());
}

// Element i of a reduction whose sum ends on rank `owner`.
template <class T>
T sum_at(std::int64_t i, const Group& group, std::uint64_t salt, int owner,
         const ReduceOptions& options) {
  return options.algorithm == Algorithm::ring ? chained_at<T>(i, group.size(), salt, owner, options)
                                              : reduced_at<T>(i, group.size(), salt, options);
}

template <class T>
void check_all_reduce(Group& group, std::int64_t count, const ReduceOptions& options,
                      std::uint64_t salt = 1) {
  Guarded<T> data = filled<T>(count, group.rank(), salt);
  group.all_reduce(span_of(data), options).wait();
  require_values(case_name<T>("all_reduce", group, count), data, 0, [&](std::int64_t i) {
    return sum_at<T>(i, group, salt, owner_of(i, count, group.size(), kGranule), options);
  });
}

template <class T>
void check_reduce(Group& group, std::int64_t count, int root, const ReduceOptions& options,
                  std::uint64_t salt = 5) {
  Guarded<T> data = filled<T>(count, group.rank(), salt);
  group.reduce(span_of(data), root, options).wait();
  require_values(case_name<T>("reduce", group, count), data, 0, [&](std::int64_t i) {
    return group.rank() == root ? sum_at<T>(i, group, salt, root, options)
                                : value_of<T>(group.rank(), i, salt);
  });
}

template <class T>
void check_reduce_scatter(Group& group, std::int64_t count, const ReduceOptions& options,
                          std::uint64_t salt = 2) {
  const Range block = block_of(count, group.size(), group.rank());
  const auto expected = [&](std::int64_t i) {
    return sum_at<T>(i, group, salt, group.rank(), options);
  };
  Guarded<T> input = filled<T>(count, group.rank(), salt);
  Guarded<T> output(static_cast<std::size_t>(block.size()), 1);
  group.reduce_scatter(span_of(input), span_of(output), options).wait();
  const std::string name = case_name<T>("reduce_scatter", group, count);
  require_values(name, output, block.begin, expected);
  require_values(name + " input", input, 0,
                 [&](std::int64_t i) { return value_of<T>(group.rank(), i, salt); });

  const Span in_place{input.data() + block.begin, block.size(), DtypeOf<T>::value};
  group.reduce_scatter(span_of(input), in_place, options).wait();
  require_values(name + " in place", input, 0, [&](std::int64_t i) {
    return block.begin <= i && i < block.end ? expected(i) : value_of<T>(group.rank(), i, salt);
  });
}

template <class T>
void check_all_gather(Group& group, std::int64_t count, const CollectiveOptions& options = {},
                      std::uint64_t salt = 3) {
  const Range block = block_of(count, group.size(), group.rank());
  const auto expected = [&](std::int64_t i) {
    return value_of<T>(owner_of(i, count, group.size()), i, salt);
  };
  Guarded<T> input(static_cast<std::size_t>(block.size()), 1);
  Guarded<T> output(static_cast<std::size_t>(count), 1);
  for (std::int64_t i = block.begin; i < block.end; ++i) {
    input[static_cast<std::size_t>(i - block.begin)] = value_of<T>(group.rank(), i, salt);
  }
  group.all_gather(span_of(input), span_of(output), options).wait();
  const std::string name = case_name<T>("all_gather", group, count);
  require_values(name, output, 0, expected);

  Guarded<T> in_place(static_cast<std::size_t>(count), 1);
  std::copy_n(input.data(), block.size(), in_place.data() + block.begin);
  group
      .all_gather({in_place.data() + block.begin, block.size(), DtypeOf<T>::value},
                  span_of(in_place), options)
      .wait();
  require_values(name + " in place", in_place, 0, expected);
}

template <class T>
void check_broadcast(Group& group, std::int64_t count, int root,
                     const CollectiveOptions& options = {}, std::uint64_t salt = 4) {
  Guarded<T> data = filled<T>(count, group.rank(), salt);
  group.broadcast(span_of(data), root, options).wait();
  require_values(case_name<T>("broadcast", group, count), data, 0,
                 [&](std::int64_t i) { return value_of<T>(root, i, salt); });
}

// Elements of this rank's block of `count` between guards, as rank `from` holds them.
template <class T>
Guarded<T> filled_block(const Group& group, std::int64_t count, int from, std::uint64_t salt) {
  const Range range = block_of(count, group.size(), group.rank());
  Guarded<T> block(static_cast<std::size_t>(range.size()), 1);
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    block[static_cast<std::size_t>(i - range.begin)] = value_of<T>(from, i, salt);
  }
  return block;
}

template <class T>
void check_gather(Group& group, std::int64_t count, int root, const CollectiveOptions& options = {},
                  std::uint64_t salt = 6) {
  const auto expected = [&](std::int64_t i) {
    return value_of<T>(owner_of(i, count, group.size()), i, salt);
  };
  const std::string name = case_name<T>("gather", group, count);
  const Range own = block_of(count, group.size(), group.rank());
  const Guarded<T> block = filled_block<T>(group, count, group.rank(), salt);
  Guarded<T> input = block;
  if (group.rank() != root) {
    group.gather(span_of(input), {nullptr, count, DtypeOf<T>::value}, root, options).wait();
    require_values(name + " input", input, own.begin, expected);
    group.gather(span_of(input), {nullptr, count, DtypeOf<T>::value}, root, options).wait();
    return;
  }
  Guarded<T> whole(static_cast<std::size_t>(count), 1);
  group.gather(span_of(input), span_of(whole), root, options).wait();
  require_values(name, whole, 0, expected);
  Guarded<T> in_place(static_cast<std::size_t>(count), 1);
  std::copy_n(block.data(), own.size(), in_place.data() + own.begin);
  group
      .gather({in_place.data() + own.begin, own.size(), DtypeOf<T>::value}, span_of(in_place), root,
              options)
      .wait();
  require_values(name + " in place", in_place, 0, expected);
}

template <class T>
void check_scatter(Group& group, std::int64_t count, int root,
                   const CollectiveOptions& options = {}, std::uint64_t salt = 7) {
  const auto expected = [&](std::int64_t i) { return value_of<T>(root, i, salt); };
  const std::string name = case_name<T>("scatter", group, count);
  const Range own = block_of(count, group.size(), group.rank());
  Guarded<T> block(static_cast<std::size_t>(own.size()), 1);
  if (group.rank() != root) {
    group.scatter({nullptr, count, DtypeOf<T>::value}, span_of(block), root, options).wait();
    require_values(name, block, own.begin, expected);
    group.scatter({nullptr, count, DtypeOf<T>::value}, span_of(block), root, options).wait();
    return;
  }
  Guarded<T> whole = filled<T>(count, root, salt);
  group.scatter(span_of(whole), span_of(block), root, options).wait();
  require_values(name, block, own.begin, expected);
  group
      .scatter(span_of(whole), {whole.data() + own.begin, own.size(), DtypeOf<T>::value}, root,
               options)
      .wait();
  require_values(name + " in place", whole, 0, expected);
}

template <class T>
void check_all_to_all(Group& group, std::int64_t count, const CollectiveOptions& options = {},
                      std::uint64_t salt = 8) {
  const int ranks = group.size();
  const Range own = block_of(count, ranks, group.rank());
  // Element i of the output: rank i / own.size() had it at that place of this rank's block.
  const auto expected = [&](std::int64_t i) {
    return value_of<T>(static_cast<int>(i / own.size()), own.begin + i % own.size(), salt);
  };
  const std::string name = case_name<T>("all_to_all", group, count);
  Guarded<T> input = filled<T>(count, group.rank(), salt);
  Guarded<T> output(static_cast<std::size_t>(ranks * own.size()), 1);
  group.all_to_all(span_of(input), span_of(output), options).wait();
  require_values(name, output, 0, expected);
  require_values(name + " input", input, 0,
                 [&](std::int64_t i) { return value_of<T>(group.rank(), i, salt); });
  if (count % ranks == 0) {
    group.all_to_all(span_of(input), span_of(input), options).wait();
    require_values(name + " in place", input, 0, expected);
  }
}

// Reductions, gathers and broadcast, for all reductions of T, at one size.
template <class T>
void check_all(Group& group, std::int64_t count, Algorithm algorithm = Algorithm::automatic) {
  for (ReduceOptions options : reductions_of<T>()) {
    options.algorithm = algorithm;
    check_all_reduce<T>(group, count, options);
    check_reduce_scatter<T>(group, count, options);
  }
  check_all_gather<T>(group, count, {.algorithm = algorithm});
  for (const int root : {0, group.size() - 1}) {
    check_broadcast<T>(group, count, root, {.algorithm = algorithm});
  }
}

}  // namespace lockstep::test

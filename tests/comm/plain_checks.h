// Collectives on plain memory against the oracle, for whatever algorithm their size selects. Each
// runs on every rank; buffers stand between guards, at a misalignment of one element.
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

template <class T>
void check_all_reduce(Group& group, std::int64_t count, const ReduceOptions& options) {
  const std::uint64_t salt = 1;
  Guarded<T> data = filled<T>(count, group.rank(), salt);
  group.all_reduce(span_of(data), options).wait();
  require_values(case_name<T>("all_reduce", group, count), data, 0,
                 [&](std::int64_t i) { return reduced_at<T>(i, group.size(), salt, options); });
}

template <class T>
void check_reduce_scatter(Group& group, std::int64_t count, const ReduceOptions& options) {
  const std::uint64_t salt = 2;
  const Range block = block_of(count, group.size(), group.rank());
  const auto expected = [&](std::int64_t i) {
    return reduced_at<T>(i, group.size(), salt, options);
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

// The rank whose block element i is.
inline int owner_of(std::int64_t i, std::int64_t count, int ranks) {
  return static_cast<int>(i / block_of(count, ranks, 0).size());
}

template <class T>
void check_all_gather(Group& group, std::int64_t count) {
  const std::uint64_t salt = 3;
  const Range block = block_of(count, group.size(), group.rank());
  const auto expected = [&](std::int64_t i) {
    return value_of<T>(owner_of(i, count, group.size()), i, salt);
  };
  Guarded<T> input(static_cast<std::size_t>(block.size()), 1);
  Guarded<T> output(static_cast<std::size_t>(count), 1);
  for (std::int64_t i = block.begin; i < block.end; ++i) {
    input[static_cast<std::size_t>(i - block.begin)] = value_of<T>(group.rank(), i, salt);
  }
  group.all_gather(span_of(input), span_of(output)).wait();
  const std::string name = case_name<T>("all_gather", group, count);
  require_values(name, output, 0, expected);

  Guarded<T> in_place(static_cast<std::size_t>(count), 1);
  std::copy_n(input.data(), block.size(), in_place.data() + block.begin);
  group
      .all_gather({in_place.data() + block.begin, block.size(), DtypeOf<T>::value},
                  span_of(in_place))
      .wait();
  require_values(name + " in place", in_place, 0, expected);
}

template <class T>
void check_broadcast(Group& group, std::int64_t count, int root) {
  const std::uint64_t salt = 4;
  Guarded<T> data = filled<T>(count, group.rank(), salt);
  group.broadcast(span_of(data), root).wait();
  require_values(case_name<T>("broadcast", group, count), data, 0,
                 [&](std::int64_t i) { return value_of<T>(root, i, salt); });
}

// Everything, for all reductions of T, at one size.
template <class T>
void check_all(Group& group, std::int64_t count) {
  for (const ReduceOptions& options : reductions_of<T>()) {
    check_all_reduce<T>(group, count, options);
    check_reduce_scatter<T>(group, count, options);
  }
  check_all_gather<T>(group, count);
  for (const int root : {0, group.size() - 1}) {
    check_broadcast<T>(group, count, root);
  }
}

}  // namespace lockstep::test

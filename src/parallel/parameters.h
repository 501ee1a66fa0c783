// Which parameters of a module are trained, in what order and type; and that all ranks agree.
#pragma once

#include "lockstep/group.h"
#include "lockstep/parallel.h"
#include "parallel/flat_parameter.h"

#include <torch/torch.h>

#include <string>
#include <string_view>
#include <vector>

namespace lockstep::parallel {

// The trainable parameters in registration order, each once (a tied one under its first name), with
// the dtype that `precision` asks for. Throws UsageError when there is none or one has a dtype that
// can't be trained.
std::vector<NamedParameter> trainable_parameters(const torch::nn::Module& module,
                                                 const Precision& precision);

// All floating-point parameters, frozen ones included, otherwise the same.
std::vector<NamedParameter> floating_parameters(const torch::nn::Module& module,
                                                const Precision& precision);

// Converts what is not trained: frozen floating-point parameters, to the type `precision` asks for.
void convert_frozen(torch::nn::Module& module, const Precision& precision);

// Collective: gives a tensor rank 0's values.
void broadcast_values(Group& group, at::Tensor& tensor, std::string_view name);

// One line per parameter and buffer: name, shape, dtype, whether it is trained, and whether its
// values are spread over the ranks (sharded_init.h).
std::vector<std::string> describe(const torch::nn::Module& module);

// Collective. Throws Mismatch on every rank unless all ranks pass the same lines, with both counts
// and the first line that differs. `what` names the things listed ("parameters").
void verify_equal_lists(Group& group, const std::vector<std::string>& lines, std::string_view what);

}  // namespace lockstep::parallel

#include "models/parameter_list.h"

#include <utility>

namespace lockstep::models {
namespace {

class List {
 public:
  void add(std::string name, std::int64_t elements) {
    parameters_.push_back({prefix_ + std::move(name), elements, unit_});
  }
  // Of GPT-2: with a bias for each of `out`.
  void add_projection(const std::string& name, std::int64_t out, std::int64_t in) {
    add(name + ".weight", out * in);
    add(name + ".bias", out);
  }
  void add_norm(const std::string& name, std::int64_t width) {
    add(name + ".weight", width);
    add(name + ".bias", width);
  }
  void begin_block(const std::string& list, std::int64_t number) {
    prefix_ = list + "." + std::to_string(number) + ".";
    unit_ = static_cast<std::size_t>(number) + 1;
  }
  void end_blocks() {
    prefix_.clear();
    unit_ = 0;
  }
  std::vector<ListedParameter> take() { return std::move(parameters_); }

 private:
  std::vector<ListedParameter> parameters_;
  std::string prefix_;
  std::size_t unit_ = 0;
};

std::vector<ListedParameter> list(const Gpt2Config& config) {
  const std::int64_t c = config.width;
  List list;
  list.add("transformer.wte.weight", config.vocabulary * c);
  list.add("transformer.wpe.weight", config.context * c);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    list.begin_block("transformer.h", layer);
    list.add_norm("ln_1", c);
    list.add_projection("attn.c_attn", 3 * c, c);
    list.add_projection("attn.c_proj", c, c);
    list.add_norm("ln_2", c);
    list.add_projection("mlp.c_fc", 4 * c, c);
    list.add_projection("mlp.c_proj", c, 4 * c);
  }
  list.end_blocks();
  list.add_norm("transformer.ln_f", c);
  return list.take();
}

std::vector<ListedParameter> list(const LlamaConfig& config) {
  const std::int64_t c = config.width;
  const std::int64_t queries = config.heads * config.head_size;
  const std::int64_t keys = config.key_heads * config.head_size;
  List list;
  list.add("model.embed_tokens.weight", config.vocabulary * c);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    list.begin_block("model.layers", layer);
    list.add("input_layernorm.weight", c);
    list.add("self_attn.q_proj.weight", queries * c);
    list.add("self_attn.k_proj.weight", keys * c);
    list.add("self_attn.v_proj.weight", keys * c);
    list.add("self_attn.o_proj.weight", c * queries);
    list.add("post_attention_layernorm.weight", c);
    list.add("mlp.gate_proj.weight", config.hidden * c);
    list.add("mlp.up_proj.weight", config.hidden * c);
    list.add("mlp.down_proj.weight", c * config.hidden);
  }
  list.end_blocks();
  list.add("model.norm.weight", c);
  if (!config.tied) {
    list.add("lm_head.weight", config.vocabulary * c);
  }
  return list.take();
}

}  // namespace

std::vector<ListedParameter> parameters_of(const ModelConfig& config) {
  return std::visit([](const auto& one) { return list(one); }, config);
}

// GPT-2 calls them ln_1, ln_2, ln_f; Llama input_layernorm, post_attention_layernorm, norm.
bool keep_f32(const std::string& name) {
  return name.find("ln_") != std::string::npos || name.find("norm.") != std::string::npos;
}

}  // namespace lockstep::models

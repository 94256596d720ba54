#include "probe/result_json.h"

#include "core/json_text.h"

namespace fathom::probe {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) {
  return number_or_null(value);
}

Json cost_json(const Cost& cost) {
  return {{"mean", number(cost.mean)},
          {"error", number(cost.error)},
          {"low", number(cost.low)},
          {"high", number(cost.high)}};
}

Json optional_cost(const std::optional<Cost>& cost) {
  return cost ? cost_json(*cost) : Json();
}

Json layer_json(const LayerResult& l, bool has_loss) {
  const LayerSums& g = l.geometry;
  const auto cost = [&](double value) { return has_loss ? number(value) : Json(); };
  Json json{{"layer", l.layer},
            {"class", name_of(l.cls)},
            {"bi", number(g.influence)},
            {"bi_first_place", number(g.first_influence)},
            {"removal", cost(l.removal.mean)},
            {"removal_error", cost(l.removal.error)},
            {"removal_low", cost(l.removal.low)},
            {"removal_high", cost(l.removal.high)},
            {"attention_removal", cost(l.attention.mean)},
            {"attention_removal_error", cost(l.attention.error)},
            {"ffn_removal", cost(l.ffn.mean)},
            {"ffn_removal_error", cost(l.ffn.error)},
            {"swap_with_next", has_loss ? optional_cost(l.swap) : Json()},
            {"mean_shift", optional_cost(l.shift)},
            {"linear_map", optional_cost(l.linear)},
            {"linear_map_explains", number_or_null(l.linear_fit)},
            {"quiet", l.quiet},
            {"same_weights_as", l.same_as < 0 ? Json() : Json(l.same_as)}};
  json["angle"] = number(g.angle);
  json["turn"] = number(g.turn);
  json["stream_norm"] = number(g.norm);
  json["attention_norm"] = number(g.attention_norm);
  json["ffn_norm"] = number(g.ffn_norm);
  json["attention_share"] = number(g.attention_share);
  json["ffn_share"] = number(g.ffn_share);
  json["share"] = number(g.share);
  json["attention_cosine"] = number(g.attention_cosine);
  json["ffn_cosine"] = number(g.ffn_cosine);
  json["cosine"] = number(g.cosine);
  json["progress"] = number(g.progress);
  return json;
}

Json curve_json(const std::vector<CurvePoint>& curve) {
  Json list = Json::array();
  for (const CurvePoint& point : curve) {
    list.push_back(
        {{"kept", point.kept}, {"loss", number(point.loss)}, {"removed", point.removed}});
  }
  return list;
}

Json head_json(const HeadResult& h) {
  Json scores = Json::object();
  HeadScores::visit(h.scores,
                    [&](const char* name, double score) { scores[name] = number(score); });
  return {{"layer", h.layer},
          {"head", h.head},
          {"role", name_of(h.role)},
          {"scores", scores},
          {"contribution", number(h.contribution)},
          {"importance", number_or_null(h.importance)},
          {"removal", optional_cost(h.removal)}};
}

Json shape_json(const ProbeResult& r) {
  const ShapeFacts& s = r.shape;
  Json json{{"layers", r.model.layers},
            {"width", r.model.width},
            {"law_layers", number_or_null(s.law_layers)},
            {"band", s.band ? Json{s.band->low, s.band->high} : Json()},
            {"evidence", s.evidence},
            {"cut", s.cut},
            {"trained_price", s.trained_price ? Json(s.trained_price->nats) : Json()},
            {"decode_saving", number(s.decode_saving)},
            {"cache_saving", number(s.cache_saving)},
            {"hardware", s.hardware}};
  return json;
}

Json model_json(const ModelFacts& m) {
  return {{"name", m.name},
          {"family", m.family},
          {"layers", m.layers},
          {"width", m.width},
          {"heads", m.heads},
          {"key_heads", m.key_heads},
          {"head_size", m.head_size},
          {"ffn", m.ffn},
          {"vocabulary", m.vocab},
          {"context", m.context},
          {"parameters", m.parameters},
          {"predicts", m.causal ? "next token" : "masked tokens"}};
}

}  // namespace

void write_result(const ProbeResult& r, Json& document) {
  document["model"] = model_json(r.model);
  document["text"] = r.text;
  document["tokens"] = r.tokens;
  document["windows"] = r.windows;
  document["window"] = r.window;
  document["stopped_because"] = r.stopped_because;
  document["seconds"] = number(r.seconds);
  document["verdict"] = r.verdict;
  document["loss"] = r.has_loss ? number(r.loss.mean) : Json();
  document["loss_interval"] = r.has_loss ? Json{number(r.loss.low), number(r.loss.high)} : Json();
  document["bits_per_byte"] = number_or_null(r.bits_per_byte);
  document["layers"] = Json::array();
  for (const LayerResult& layer : r.layers) {
    document["layers"].push_back(layer_json(layer, r.has_loss));
  }
  document["streams"] = Json::array();
  for (const StreamResult& s : r.streams) {
    document["streams"].push_back({{"largest", number(s.largest)},
                                   {"median", number(s.median)},
                                   {"effective_rank", number_or_null(s.rank_sigma)},
                                   {"effective_rank_squares", number_or_null(s.rank_square)},
                                   {"participation", number_or_null(s.participation)}});
  }
  document["rank_tokens"] = r.rank_tokens;
  document["lens"] = Json::array();
  for (const LensResult& l : r.lens) {
    document["lens"].push_back({{"divergence", number(l.divergence)},
                                {"agreement", number(l.agreement)},
                                {"loss", number(l.loss)}});
  }
  document["lens_tokens"] = r.lens_tokens;
  document["distance"] = r.distance;
  document["greedy"] = curve_json(r.curves.greedy);
  document["by_influence"] = curve_json(r.curves.by_influence);
  document["last"] = curve_json(r.curves.last);
  document["random"] = Json::array();
  for (const auto& curve : r.curves.random) document["random"].push_back(curve_json(curve));
  document["curve_tokens"] = r.curves.tokens;
  document["heads"] = Json::array();
  for (const HeadResult& head : r.heads) document["heads"].push_back(head_json(head));
  document["role_removals"] = Json::array();
  for (const RoleRemoval& each : r.role_removals) {
    document["role_removals"].push_back({{"role", name_of(each.role)},
                                         {"heads", each.heads},
                                         {"removal", optional_cost(each.removal)}});
  }
  document["head_tokens"] = r.head_tokens;
  document["importance_tokens"] = r.importance_tokens;
  document["agreement"] = {{"influence_and_removal", number(r.influence_agreement)},
                           {"removal_of_halves", number(r.half_agreement)},
                           {"influence_of_halves", number(r.half_influence_agreement)},
                           {"importance_and_head_removal", number_or_null(r.importance_agreement)}};
  document["shape"] = shape_json(r);
  document["notes"] = r.notes;
}

}  // namespace fathom::probe

// Kernels of MapKeys (engine/ops/keys/keys.h): a row of the result at a time, vectors of columns.
#include "engine/cpu/simd.h"

namespace fathom::engine::cpu::FATHOM_ISA {
namespace {

struct KeyColumns {
  std::int64_t width, key, value;  // columns in all, before the keys, before the values

  explicit KeyColumns(const KeyArgs& args)
      : width((args.heads + 2 * args.key_heads) * args.head_size),
        key(args.heads * args.head_size),
        value((args.heads + args.key_heads) * args.head_size) {}
};

float share_of(float weight) {
  return 1.0f / (1.0f + exp(splat(-weight))[0]);
}

template <class T>
void copy_columns(const T* from, T* to, std::int64_t begin, std::int64_t end) {
  for_vectors(end - begin, [&](std::int64_t i, std::int64_t n) {
    store_upto(to + begin + i, load_upto(from + begin + i, n), n);
  });
}

/// to = a x + b y over the columns of one key head.
template <class T>
void combine_head(const T* x, float a, const T* y, float b, T* to, std::int64_t size) {
  for_vectors(size, [&](std::int64_t i, std::int64_t n) {
    Vec value = load_upto(x + i, n) * a;
    if (y) value += load_upto(y + i, n) * b;
    store_upto(to + i, value, n);
  });
}

/// to[c] = sum over `count` rows of weight[row * step] from[row][c], columns [begin, end).
template <class T>
void weighted_rows(const T* from, std::int64_t width, const float* weight, std::int64_t step,
                   std::int64_t count, T* to, std::int64_t begin, std::int64_t end) {
  for_vectors(end - begin, [&](std::int64_t i, std::int64_t n) {
    Vec total{};
    for (std::int64_t r = 0; r < count; ++r) {
      total += load_upto(from + r * width + begin + i, n) * weight[r * step];
    }
    store_upto(to + begin + i, total, n);
  });
}

template <class T>
void forward_row(const KeyArgs& args, std::int64_t row) {
  const KeyColumns at(args);
  const std::int64_t t = row % args.context, size = args.head_size;
  const T* x = static_cast<const T*>(args.x.data) + row * at.width;
  T* y = static_cast<T*>(args.y.data) + row * at.width;
  if (args.map == KeyMap::smear) {
    copy_columns(x, y, 0, t == 0 ? at.width : at.key);
    if (t == 0) return;
    for (std::int64_t g = 0; g < args.key_heads; ++g) {
      const float share = share_of(args.weight[g]);
      const std::int64_t c = at.key + g * size;
      combine_head(x + c, share, x - at.width + c, 1.0f - share, y + c, size);
    }
    copy_columns(x, y, at.value, at.width);
  } else if (args.map == KeyMap::project) {
    copy_columns(x, y, 0, at.key);
    const bool made = t < args.weight_rows;
    weighted_rows(x - t * at.width, at.width, args.weight + (made ? t * args.context : 0), 1,
                  made ? args.context : 0, y, at.key, at.width);
  } else {
    for_vectors(at.key, [&](std::int64_t i, std::int64_t n) {
      store_upto(y + i, max(load_upto(x + i, n), Vec{}), n);
    });
    const float* keys = args.weight + t * args.weight_cols;
    for_vectors(args.weight_cols, [&](std::int64_t i, std::int64_t n) {
      store_upto(y + at.key + i, load_upto(keys + i, n), n);
    });
    copy_columns(x, y, at.value, at.width);
  }
}

template <class T>
void backward_row(const KeyArgs& args, std::int64_t row) {
  const KeyColumns at(args);
  const std::int64_t t = row % args.context, size = args.head_size;
  const T* x = static_cast<const T*>(args.x.data) + row * at.width;
  const T* dy = static_cast<const T*>(args.dy.data) + row * at.width;
  T* dx = static_cast<T*>(args.dx.data) + row * at.width;
  if (args.map == KeyMap::smear) {
    copy_columns(dy, dx, 0, at.key);
    for (std::int64_t g = 0; g < args.key_heads; ++g) {
      const float share = share_of(args.weight[g]);
      const std::int64_t c = at.key + g * size;
      const T* next = t + 1 < args.context ? dy + at.width + c : nullptr;
      combine_head(dy + c, t == 0 ? 1.0f : share, next, 1.0f - share, dx + c, size);
    }
    copy_columns(dy, dx, at.value, at.width);
  } else if (args.map == KeyMap::project) {
    copy_columns(dy, dx, 0, at.key);
    weighted_rows(dy - t * at.width, at.width, args.weight + t, args.context, args.weight_rows, dx,
                  at.key, at.width);
  } else {
    for_vectors(at.key, [&](std::int64_t i, std::int64_t n) {
      store_upto(dx + i, select(load_upto(x + i, n) > Vec{}, load_upto(dy + i, n), Vec{}), n);
    });
    for_vectors(args.weight_cols,
                [&](std::int64_t i, std::int64_t n) { store_upto(dx + at.key + i, Vec{}, n); });
    copy_columns(dy, dx, at.value, at.width);
  }
}

void put_one(const KeyArgs& args, std::int64_t index, float value) {
  args.d_weight[index] = args.accumulate ? args.d_weight[index] + value : value;
}

template <class T>
float smear_weight(const KeyArgs& args, std::int64_t g) {
  const KeyColumns at(args);
  const float share = share_of(args.weight[g]);
  const std::int64_t column = at.key + g * args.head_size;
  double total = 0;
  for (std::int64_t b = 0; b < args.batch; ++b) {
    Vec part{};
    for (std::int64_t t = 1; t < args.context; ++t) {
      const std::int64_t row = (b * args.context + t) * at.width + column;
      const T* x = static_cast<const T*>(args.x.data) + row;
      const T* dy = static_cast<const T*>(args.dy.data) + row;
      for_vectors(args.head_size, [&](std::int64_t i, std::int64_t n) {
        part += load_upto(dy + i, n) * (load_upto(x + i, n) - load_upto(x - at.width + i, n));
      });
    }
    total += sum(part);
  }
  return share * (1.0f - share) * static_cast<float>(total);
}

/// Row r of d_weight: <dk'_r, k_t> + <dv'_r, v_t>, summed over the batch.
template <class T>
void project_weight(const KeyArgs& args, std::int64_t r) {
  const KeyColumns at(args);
  for (std::int64_t t = 0; t < args.context; ++t) {
    Vec part{};
    for (std::int64_t b = 0; b < args.batch; ++b) {
      const std::int64_t first = b * args.context * at.width + at.key;
      const T* x = static_cast<const T*>(args.x.data) + first + t * at.width;
      const T* dy = static_cast<const T*>(args.dy.data) + first + r * at.width;
      for_vectors(at.width - at.key, [&](std::int64_t i, std::int64_t n) {
        part += load_upto(dy + i, n) * load_upto(x + i, n);
      });
    }
    put_one(args, r * args.context + t, sum(part));
  }
}

template <class T>
void synthesise_weight(const KeyArgs& args, std::int64_t t) {
  const KeyColumns at(args);
  for_vectors(args.weight_cols, [&](std::int64_t i, std::int64_t n) {
    Vec total{};
    for (std::int64_t b = 0; b < args.batch; ++b) {
      const T* dy =
          static_cast<const T*>(args.dy.data) + (b * args.context + t) * at.width + at.key;
      total += load_upto(dy + i, n);
    }
    put(args.d_weight + t * args.weight_cols + i, total, n, args.accumulate);
  });
}

}  // namespace

void map_keys_forward(const KeyArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.x, [&](auto type) {
    for (std::int64_t row = begin; row < end; ++row) {
      forward_row<ElementOf<decltype(type)>>(args, row);
    }
  });
}

void map_keys_backward(const KeyArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.x, [&](auto type) {
    for (std::int64_t row = begin; row < end; ++row) {
      backward_row<ElementOf<decltype(type)>>(args, row);
    }
  });
}

void map_keys_weight(const KeyArgs& args, std::int64_t begin, std::int64_t end) {
  with_type(args.x, [&](auto type) {
    using T = ElementOf<decltype(type)>;
    for (std::int64_t part = begin; part < end; ++part) {
      if (args.map == KeyMap::smear) put_one(args, part, smear_weight<T>(args, part));
      if (args.map == KeyMap::project) project_weight<T>(args, part);
      if (args.map == KeyMap::synthesise) synthesise_weight<T>(args, part);
    }
  });
}

}  // namespace fathom::engine::cpu::FATHOM_ISA

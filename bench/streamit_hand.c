/* The programs of `streamit_programs` as a skilled person writes them in C.

   They calculate in the same order as the loops of `streamit_hand`, so that answers are equal bit
   for bit; each says how many items it gave. */
#include <math.h>
#include <stdint.h>

static int64_t fir(const float *restrict x, int64_t n, const float *restrict h, int64_t taps,
                   int64_t step, float *restrict out) {
    int64_t count = 0;
    for (int64_t at = 0; at + taps <= n && at + step <= n; at += step) {
        float total = 0;
        for (int64_t i = 0; i < taps; i++) total += x[at + i] * h[i];
        out[count++] = total;
    }
    return count;
}

int64_t fm_radio(const float *x, int64_t n, const float *front, const float *bands, float *out,
                 float *a, float *b, float *c) {
    int64_t count = fir(x, n, front, 128, 5, a) - 1, given = 0;
    for (int64_t i = 0; i < count; i++) b[i] = 39.788735f * (float)atan((double)(a[i] * a[i + 1]));
    for (int k = 0; k < 4; k++) {
        given = fir(b, count, bands + 128 * k, 64, 1, a);
        fir(b, count, bands + 128 * k + 64, 64, 1, c);
        float gain = 1.0f + (float)k;
        for (int64_t i = 0; i < given; i++) {
            float v = (c[i] - a[i]) * gain;
            out[i] = k == 0 ? 0.0f + v : out[i] + v;
        }
    }
    return given;
}

int64_t fft(const float *restrict x, int64_t n, const float *restrict w, float *restrict out) {
    const int64_t size = 256;
    int64_t given = 0;
    for (int64_t base = 0; base + 2 * size <= n; base += 2 * size) {
        for (int64_t i = 0; i < size; i++) {
            int64_t to = 0, rest = i;
            for (int bit = 0; bit < 8; bit++) {
                to = to * 2 + rest % 2;
                rest /= 2;
            }
            out[base + 2 * i] = x[base + 2 * to];
            out[base + 2 * i + 1] = x[base + 2 * to + 1];
        }
        int level = 0;
        for (int64_t m = 2; m <= size; m *= 2, level++) {
            const float *turn = w + 256 * level;
            for (int64_t start = base; start < base + 2 * size; start += 2 * m) {
                for (int64_t i = 0; i < m / 2; i++) {
                    float *p = out + start + 2 * i, *q = out + start + m + 2 * i;
                    float wr = turn[2 * i], wi = turn[2 * i + 1];
                    float tr = q[0] * wr - q[1] * wi, ti = q[0] * wi + q[1] * wr;
                    float ar = p[0], ai = p[1];
                    p[0] = ar + tr;
                    p[1] = ai + ti;
                    q[0] = ar - tr;
                    q[1] = ai - ti;
                }
            }
        }
        given += 2 * size;
    }
    return given;
}

int64_t bitonic(const int32_t *restrict x, int64_t n, int32_t *restrict out) {
    const int64_t size = 32;
    for (int64_t base = 0; base + size <= n; base += size) {
        int32_t *o = out + base;
        for (int64_t i = 0; i < size; i++) o[i] = x[base + i];
        for (int64_t k = 2; k <= size; k *= 2)
            for (int64_t j = k / 2; j > 0; j /= 2)
                for (int64_t i = 0; i < size; i++) {
                    int64_t other = i ^ j;
                    if (other > i) {
                        int32_t a = o[i], b = o[other];
                        if ((a > b) == ((i & k) == 0)) {
                            o[i] = b;
                            o[other] = a;
                        }
                    }
                }
    }
    return n / size * size;
}

int64_t filter_bank(const float *x, int64_t n, const float *first, const float *second, float *out,
                    float *a, float *b) {
    int64_t given = 0;
    for (int k = 0; k < 8; k++) {
        int64_t count = fir(x, n, first + 32 * k, 32, 1, a) / 8;
        for (int64_t i = 0; i < count; i++) {
            b[8 * i] = a[8 * i];
            for (int j = 1; j < 8; j++) b[8 * i + j] = 0;
        }
        given = fir(b, 8 * count, second + 32 * k, 32, 1, a);
        for (int64_t i = 0; i < given; i++) out[i] = k == 0 ? 0.0f + a[i] : out[i] + a[i];
    }
    return given;
}

int64_t dct(const float *restrict x, int64_t n, const float *restrict c, float *restrict out) {
    float t[64];
    for (int64_t base = 0; base + 64 <= n; base += 64) {
        for (int row = 0; row < 8; row++)
            for (int u = 0; u < 8; u++) {
                float s = 0;
                for (int k = 0; k < 8; k++) s += c[8 * u + k] * x[base + 8 * row + k];
                t[8 * u + row] = s;
            }
        for (int row = 0; row < 8; row++)
            for (int u = 0; u < 8; u++) {
                float s = 0;
                for (int k = 0; k < 8; k++) s += c[8 * u + k] * t[8 * row + k];
                out[base + 8 * u + row] = s;
            }
    }
    return n / 64 * 64;
}

int64_t beamformer(const float *x, int64_t n, const float *fronts, const float *steer,
                   const float *backs, float *out, float *a, float *b, float *c) {
    int64_t rows = n / 12, count = 0, given = 0;
    for (int k = 0; k < 12; k++) {
        for (int64_t i = 0; i < rows; i++) b[i] = x[12 * i + k];
        count = fir(b, rows, fronts + 32 * k, 32, 2, c);
        for (int64_t i = 0; i < count; i++) a[12 * i + k] = c[i];
    }
    for (int beam = 0; beam < 4; beam++) {
        for (int64_t i = 0; i < count; i++) {
            float s = 0;
            for (int k = 0; k < 12; k++) s += steer[12 * beam + k] * a[12 * i + k];
            b[i] = s;
        }
        given = fir(b, count, backs + 32 * beam, 32, 1, c);
        for (int64_t i = 0; i < given; i++) out[4 * i + beam] = c[i] * c[i];
    }
    return 4 * given;
}

int64_t vocoder(const float *x, int64_t n, const float *bands, const float *last, float *out,
                float *a, float *b) {
    int64_t given = 0;
    for (int k = 0; k < 6; k++) {
        int64_t count = fir(x, n, bands + 128 * k, 64, 1, a);
        fir(x, n, bands + 128 * k + 64, 64, 1, b);
        for (int64_t i = 0; i < count; i++) a[i] = fabsf(b[i] - a[i]);
        given = fir(a, count, last, 64, 50, b);
        for (int64_t i = 0; i < given; i++) out[6 * i + k] = b[i];
    }
    return 6 * given;
}

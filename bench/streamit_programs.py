"""The programs that `streamit_engine` measures, as a person writes them in StreamIt."""

from __future__ import annotations

_FILTERED = """
float->float filter LowPass(float rate, float cutoff, int taps, int decimation) {
    float[taps] coeff;
    init {
        float w = 2 * pi * cutoff / rate;
        for (int i = 0; i < taps; i++) {
            float x = i - (taps - 1) / 2.0;
            if (x == 0) coeff[i] = w / pi;
            else coeff[i] = sin(w * x) / pi / x * (0.54 - 0.46 * cos(2 * pi * i / (taps - 1)));
        }
    }
    work push 1 pop 1 + decimation peek taps {
        float sum = 0;
        for (int i = 0; i < taps; i++) sum += peek(i) * coeff[i];
        push(sum);
        for (int i = 0; i <= decimation; i++) pop();
    }
}
"""

FM_RADIO = (
    _FILTERED
    + """
float->float filter Demodulate(float gain) {
    work push 1 pop 1 peek 2 {
        float t = peek(0) * peek(1);
        push(gain * atan(t));
        pop();
    }
}
float->float splitjoin Band(float rate, float low, float high, int taps) {
    split duplicate;
    add LowPass(rate, low, taps, 0);
    add LowPass(rate, high, taps, 0);
    join roundrobin;
}
float->float filter Difference(float gain) {
    work push 1 pop 2 { float a = pop(); float b = pop(); push((b - a) * gain); }
}
float->float pipeline Amplified(int i) {
    add Band(250000.0, 1000.0 + 500 * i, 1500.0 + 500 * i, 64);
    add Difference(1.0 + i);
}
float->float splitjoin Bands(int n) {
    split duplicate;
    for (int i = 0; i < n; i++) add Amplified(i);
    join roundrobin;
}
float->float filter Sum(int n) {
    work push 1 pop n { float t = 0; for (int i = 0; i < n; i++) t += pop(); push(t); }
}
float->float pipeline Radio {
    add LowPass(250000.0, 108000.0, 128, 4);
    add Demodulate(39.788735);
    add Bands(4);
    add Sum(4);
}
"""
)

FFT = """
float->float filter Reorder(int n) {
    work push 2 * n pop 2 * n {
        for (int i = 0; i < n; i++) {
            int to = 0;
            int from = i;
            for (int k = 1; k < n; k = k * 2) { to = to * 2 + from % 2; from = from / 2; }
            push(peek(2 * to));
            push(peek(2 * to + 1));
        }
        for (int i = 0; i < 2 * n; i++) pop();
    }
}
float->float filter Combine(int n) {
    float[n] w;
    init {
        for (int i = 0; i < n / 2; i++) {
            w[2 * i] = cos(-2 * pi * i / n);
            w[2 * i + 1] = sin(-2 * pi * i / n);
        }
    }
    work push 2 * n pop 2 * n {
        float[2 * n] result;
        for (int i = 0; i < n / 2; i++) {
            float ar = peek(2 * i);
            float ai = peek(2 * i + 1);
            float br = peek(n + 2 * i);
            float bi = peek(n + 2 * i + 1);
            float wr = w[2 * i];
            float wi = w[2 * i + 1];
            float tr = br * wr - bi * wi;
            float ti = br * wi + bi * wr;
            result[2 * i] = ar + tr;
            result[2 * i + 1] = ai + ti;
            result[n + 2 * i] = ar - tr;
            result[n + 2 * i + 1] = ai - ti;
        }
        for (int i = 0; i < 2 * n; i++) { pop(); push(result[i]); }
    }
}
float->float pipeline Transform(int n) {
    add Reorder(n);
    for (int m = 2; m <= n; m = m * 2) add Combine(m);
}
float->float pipeline FFT { add Transform(256); }
"""

BITONIC = """
int->int filter Exchange(boolean up) {
    work push 2 pop 2 {
        int a = pop();
        int b = pop();
        if ((a <= b) == up) { push(a); push(b); }
        else { push(b); push(a); }
    }
}
int->int splitjoin Shuffle(int n) {
    split roundrobin(n / 2);
    add Identity<int>;
    add Identity<int>;
    join roundrobin(1);
}
int->int splitjoin Unshuffle(int n) {
    split roundrobin(1);
    add Identity<int>;
    add Identity<int>;
    join roundrobin(n / 2);
}
int->int pipeline Step(int n, boolean up) {
    add Shuffle(n);
    add Exchange(up);
    add Unshuffle(n);
}
int->int pipeline Merge(int n, boolean up) {
    add Step(n, up);
    if (n > 2) add splitjoin {
        split roundrobin(n / 2);
        add Merge(n / 2, up);
        add Merge(n / 2, up);
        join roundrobin(n / 2);
    };
}
int->int pipeline Sort(int n, boolean up) {
    if (n > 2) add splitjoin {
        split roundrobin(n / 2);
        add Sort(n / 2, true);
        add Sort(n / 2, false);
        join roundrobin(n / 2);
    };
    add Merge(n, up);
}
int->int pipeline Bitonic { add Sort(32, true); }
"""

FILTER_BANK = """
float->float filter FIR(int taps, int which) {
    float[taps] h;
    init { for (int i = 0; i < taps; i++) h[i] = i * taps + which * taps + which + i + 1; }
    work push 1 pop 1 peek taps {
        float sum = 0;
        for (int i = 0; i < taps; i++) sum += h[i] * peek(i);
        push(sum);
        pop();
    }
}
float->float filter Down(int n) {
    work push 1 pop n { push(pop()); for (int i = 0; i < n - 1; i++) pop(); }
}
float->float filter Up(int n) {
    work push n pop 1 { push(pop()); for (int i = 0; i < n - 1; i++) push(0); }
}
float->float splitjoin Branches(int n) {
    split duplicate;
    for (int i = 0; i < n; i++) add pipeline {
        add FIR(32, i);
        add Down(n);
        add Up(n);
        add FIR(32, i + 8);
    };
    join roundrobin;
}
float->float filter Sum(int n) {
    work push 1 pop n { float t = 0; for (int i = 0; i < n; i++) t += pop(); push(t); }
}
float->float pipeline Bank { add Branches(8); add Sum(8); }
"""

DCT = """
float->float filter Rows {
    float[8][8] c;
    init {
        for (int u = 0; u < 8; u++) for (int x = 0; x < 8; x++) {
            float s = 0.5;
            if (u == 0) s = 0.35355339;
            c[u][x] = s * cos((2 * x + 1) * u * pi / 16);
        }
    }
    work push 8 pop 8 {
        for (int u = 0; u < 8; u++) {
            float t = 0;
            for (int x = 0; x < 8; x++) t += c[u][x] * peek(x);
            push(t);
        }
        for (int x = 0; x < 8; x++) pop();
    }
}
float->float splitjoin Turned {
    split roundrobin(1);
    for (int i = 0; i < 8; i++) add Identity<float>;
    join roundrobin(8);
}
float->float pipeline DCT { add Rows; add Turned; add Rows; add Turned; }
"""

BEAMFORMER = (
    _FILTERED
    + """
float->float filter Steer(int channels, int beam) {
    float[channels] weight;
    init { for (int i = 0; i < channels; i++) weight[i] = cos(0.1 * (beam + 1) * i); }
    work push 1 pop channels {
        float t = 0;
        for (int i = 0; i < channels; i++) t += weight[i] * pop();
        push(t);
    }
}
float->float filter Power { work push 1 pop 1 { float x = pop(); push(x * x); } }
float->float splitjoin Channels(int n) {
    split roundrobin;
    for (int i = 0; i < n; i++) add LowPass(1000.0, 100.0 + 10 * i, 32, 1);
    join roundrobin;
}
float->float splitjoin Beams(int channels, int n) {
    split duplicate;
    for (int i = 0; i < n; i++) add pipeline {
        add Steer(channels, i);
        add LowPass(1000.0, 50.0 + 10 * i, 32, 0);
        add Power;
    };
    join roundrobin;
}
float->float pipeline Beamformer { add Channels(12); add Beams(12, 4); }
"""
)

VOCODER = (
    _FILTERED
    + """
float->float filter Rectify { work push 1 pop 1 { push(abs(pop())); } }
float->float splitjoin Bands(int n) {
    split duplicate;
    for (int i = 0; i < n; i++) add pipeline {
        add splitjoin {
            split duplicate;
            add LowPass(8000.0, 200.0 * i + 100.0, 64, 0);
            add LowPass(8000.0, 200.0 * i + 300.0, 64, 0);
            join roundrobin;
        };
        add filter { work push 1 pop 2 { float a = pop(); push(pop() - a); } };
        add Rectify;
        add LowPass(8000.0, 40.0, 64, 49);
    };
    join roundrobin;
}
float->float pipeline Vocoder { add Bands(6); }
"""
)
